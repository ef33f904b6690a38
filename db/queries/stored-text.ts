/**
 * PostgreSQL's text cannot hold U+0000. Columns that may carry foreign text (errors, audit) show its symbol instead,
 * so that a hostile byte can neither fail a statement nor vanish. JSON columns need none of this: they hold it escaped.
 */
export function storableText<T extends string | null | undefined>(text: T): T {
  return (typeof text === 'string' ? text.replaceAll('\0', '\u2400') : text) as T;
}
