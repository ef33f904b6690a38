/** Takes secrets out of what is about to be logged: by the name of a field, and by their form inside text. */
const SECRET_NAME =
  /^(?:token|cookie|set-cookie|authorization|.*(?:secret|password|passwd|api[-_]?key|credentials?)|.*(?:access|bearer|sign[-_]?in|one[-_]?time|auth|refresh)[-_]?token)$/i;
const SECRET_TEXT: readonly [RegExp, string][] = [
  [/([a-z][a-z0-9+.-]*:\/\/[^\s:/@]*):[^\s@]*@/gi, '$1:[secret]@'],
  [/\b(Bearer\s+)[\w.~+/-]+=*/gi, '$1[secret]'],
  [/([?&](?:token|secret|password|api_?key)=)[^&\s"']+/gi, '$1[secret]'],
];
const MAX_DEPTH = 8;
/** A failed query can carry a whole dataset in its message. */
const MAX_CHARACTERS = 8_000;

/** A copy without secrets; the value itself is not changed. Errors keep name, message, stack and cause. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (value === null || typeof value !== 'object') return value;
  if (depth >= MAX_DEPTH) return '[deeper]';
  if (value instanceof Error) {
    if ('query' in value && 'params' in value) return redactFailedQuery(value, depth);
    const { name, message, stack, cause } = value;
    const own = redact({ ...value }, depth + 1) as Record<string, unknown>;
    const rest = { message: redactText(message), stack: redactText(stack ?? '') };
    return { ...own, name, ...rest, ...(cause === undefined ? {} : { cause: redact(cause, depth + 1) }) };
  }
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  const out: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value))
    out[key] = SECRET_NAME.test(key) ? '[secret]' : redact(item, depth + 1);
  return out;
}

/** drizzle's error around the driver's: its message and fields hold the statement with all values, people's and models' text. */
function redactFailedQuery({ name, stack, cause }: Error, depth: number): Record<string, unknown> {
  const places = stack?.split('\n').filter((line) => /^ +at /.test(line)) ?? [];
  return { name, message: 'A statement failed.', stack: places.join('\n'), cause: redact(cause, depth + 1) };
}

export function redactText(text: string): string {
  const kept = text.length > MAX_CHARACTERS ? text.slice(0, MAX_CHARACTERS) : text;
  const clean = SECRET_TEXT.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), kept);
  return kept === text ? clean : `${clean}… [${text.length - kept.length} more characters]`;
}
