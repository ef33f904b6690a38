/**
 * Sampled bytes as a string of one character a byte: every mark of a turn is ASCII, so offsets in it are byte offsets,
 * exact even when a character is split over tokens or the bytes are no valid UTF-8.
 */
export function toByteString(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return text;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export function decodeBytes(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** The first place at or after `from` that is no blank or line break. */
export function skipBlanks(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ' || text[at] === '\t' || text[at] === '\n' || text[at] === '\r') at++;
  return at;
}

/** Finds the end of a JSON object: past its closing brace, or -1 when it is never closed. Braces in strings do not count. */
export type ObjectEnd = (from: number) => number;

/** What objects that are never closed may cost together, in lengths of the text: a policy that loops writes thousands. */
const UNCLOSED_SCANS = 8;

/** For one text; beyond what unclosed objects may cost, every further one counts as never closed. */
export function objectEnds(text: string): ObjectEnd {
  let left = UNCLOSED_SCANS * text.length;
  return (from) => {
    if (left < 0) return -1;
    const end = endOfObject(text, from);
    if (end === -1) left -= text.length - from;
    return end;
  };
}

function endOfObject(text: string, from: number): number {
  let depth = 0;
  let inString = false;
  for (let at = from; at < text.length; at++) {
    const c = text[at];
    if (inString) {
      if (c === '\\') at++;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === '{') depth++;
    else if (c === '}' && --depth === 0) return at + 1;
  }
  return -1;
}
