/** An address up to this length is written whole. */
const WHOLE = 34;

/**
 * What tells the addresses of one backend apart, for where they do not fit: without what all begin and end with, by
 * whole parts. `http://worker-1.pool.example:8000` of several such → `worker-1…`; one alone is cut at its end. Never two
 * the same: then they are left whole.
 */
export function shortAddresses(urls: readonly string[]): string[] {
  if (urls.every(({ length }) => length <= WHOLE)) return [...urls];
  const bare = urls.map((url) => url.replace(/^https?:\/\//, ''));
  const short = bare.length === 1 ? bare : withoutShared(bare);
  const shown = short.map((text) => (text.length <= WHOLE ? text : `${text.slice(0, WHOLE - 1)}…`));
  return new Set(shown).size === urls.length ? shown : [...urls];
}

function withoutShared(addresses: readonly string[]): string[] {
  const [first = '', ...others] = addresses;
  const shortest = Math.min(...addresses.map(({ length }) => length));
  const shared = (same: (at: number) => boolean): number => {
    let length = 0;
    while (length < shortest && same(length)) length++;
    return length;
  };
  const head = shared((at) => others.every((other) => other[at] === first[at]));
  const tail = shared((at) => others.every((other) => other.at(-1 - at) === first.at(-1 - at)));
  // Back to where a part begins, and on to where one ends.
  const begin = Math.max(0, first.slice(0, head).search(/[/.:][^/.:]*$/));
  const ending = first.slice(first.length - tail);
  const end = ending.search(/[/.:]/) === -1 ? 0 : ending.length - ending.search(/[/.:]/);
  return addresses.map((address) => {
    const middle = address.slice(begin, Math.max(begin, address.length - end));
    return `${begin > 0 ? '…' : ''}${middle}${end > 0 ? '…' : ''}`;
  });
}
