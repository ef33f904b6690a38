/**
 * Finds stop strings in a stream of bytes: they may begin and end anywhere inside tokens and be split over several.
 * Works on bytes, so a stop string with a character that is split over tokens is found too.
 */

export class StopStrings {
  readonly #needles: { text: string; bytes: Uint8Array }[];
  readonly #keep: number;
  /** The last bytes seen: one less than the longest stop string, a match could still begin in them. */
  #tail: Uint8Array = new Uint8Array(0);

  constructor(stop: readonly string[]) {
    const encoder = new TextEncoder();
    this.#needles = stop.filter((text) => text !== '').map((text) => ({ text, bytes: encoder.encode(text) }));
    this.#keep = Math.max(0, ...this.#needles.map((needle) => needle.bytes.length - 1));
  }

  /** Adds one token's bytes. Returns the stop string that is complete now (the one that ends first), else null. */
  push(bytes: Uint8Array): string | null {
    if (this.#needles.length === 0) return null;
    const window = new Uint8Array(this.#tail.length + bytes.length);
    window.set(this.#tail);
    window.set(bytes, this.#tail.length);
    let found: { text: string; end: number; length: number } | null = null;
    for (const needle of this.#needles) {
      const at = indexOf(window, needle.bytes);
      if (at < 0) continue;
      const end = at + needle.bytes.length;
      const better = found === null || end < found.end || (end === found.end && needle.bytes.length > found.length);
      if (better) found = { text: needle.text, end, length: needle.bytes.length };
    }
    this.#tail = window.slice(Math.max(0, window.length - this.#keep));
    return found?.text ?? null;
  }
}

function indexOf(haystack: Uint8Array, needle: Uint8Array): number {
  const last = haystack.length - needle.length;
  for (let start = 0; start <= last; start++) {
    let k = 0;
    while (k < needle.length && haystack[start + k] === needle[k]) k++;
    if (k === needle.length) return start;
  }
  return -1;
}
