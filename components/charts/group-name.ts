/** Names of groups where there is no room for them: what tells one from the next stays. Pure. */

/** What all names begin with, up to the last sign that parts words; empty for a single name. */
export function sharedBeginning(names: readonly string[]): string {
  const [first, ...others] = names;
  if (first === undefined || others.length === 0) return '';
  let length = first.length;
  for (const name of others) {
    let same = 0;
    while (same < length && same < name.length && name[same] === first[same]) same++;
    length = same;
    if (length === 0) return '';
  }
  return /^.*[^\p{L}\p{N}]/su.exec(first.slice(0, length))?.[0] ?? '';
}

/** The name whole where it fits, else without the beginning all share, else without its middle. */
export function fittedName(name: string, shared: string, width: number, measure: (text: string) => number): string {
  const fits = (text: string) => text.length <= 200 && measure(text) <= width;
  if (fits(name)) return name;
  if (shared && name.length > shared.length && fits(`…${name.slice(shared.length)}`))
    return `…${name.slice(shared.length)}`;
  const signs = Array.from(name);
  const cut = (kept: number) =>
    `${signs.slice(0, Math.floor(kept / 2)).join('')}…${signs.slice(signs.length - Math.ceil(kept / 2)).join('')}`;
  let kept = Math.min(60, signs.length - 1);
  while (kept > 1 && !fits(cut(kept))) kept--;
  return cut(Math.max(1, kept));
}
