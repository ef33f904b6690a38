/** Search in the bytes of a sequence: across tokens, whether on screen or not. ASCII letters match in either case. */

const isUpper = (byte: number): boolean => byte >= 65 && byte <= 90;
const isLower = (byte: number): boolean => byte >= 97 && byte <= 122;
const fold = (byte: number): number => (isUpper(byte) ? byte | 32 : byte);

export interface Matches {
  /** First byte of each match, rising; matches do not overlap. */
  starts: Uint32Array;
  /** Bytes of a match. */
  length: number;
}

export const NO_MATCHES: Matches = { starts: new Uint32Array(0), length: 0 };

/** Every occurrence: none is left out, however many there are. An empty needle has none. */
export function findText(bytes: Uint8Array, text: string): Matches {
  const needle = new TextEncoder().encode(text).map(fold);
  const length = needle.length;
  if (length === 0 || length > bytes.length) return { starts: new Uint32Array(0), length };
  const first = needle[0] as number;
  const other = isLower(first) ? first & ~32 : first;
  let starts = new Uint32Array(256);
  let count = 0;
  const end = bytes.length - length;
  for (let at = 0; at <= end; at++) {
    const byte = bytes[at] as number;
    if (byte !== first && byte !== other) continue;
    let k = 1;
    while (k < length && fold(bytes[at + k] as number) === needle[k]) k++;
    if (k < length) continue;
    if (count === starts.length) {
      const larger = new Uint32Array(count * 2);
      larger.set(starts);
      starts = larger;
    }
    starts[count++] = at;
    at += length - 1;
  }
  return { starts: starts.subarray(0, count), length };
}

/** The token that holds a byte. */
export function tokenOfByte(byteEnds: Uint32Array, byte: number): number {
  let low = 0;
  let high = byteEnds.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((byteEnds[middle] as number) > byte) high = middle;
    else low = middle + 1;
  }
  return Math.max(0, low);
}
