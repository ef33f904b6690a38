/**
 * Time, randomness and identifiers, passed in so that a test can hold them still.
 * Nothing below the edge calls Date.now, Math.random or crypto.randomUUID itself.
 */
export interface Ambient {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Uniform in [0, 1). Not for secrets. */
  random(): number;
  /** A new identifier, sortable by creation time: prefix, underscore, 26 characters. */
  newId(prefix: IdPrefix): string;
}

export type IdPrefix =
  | 'run'
  | 'grp'
  | 'trj'
  | 'ses'
  | 'usr'
  | 'skl'
  | 'dst'
  | 'bck'
  | 'aud'
  | 'wrk'
  | 'sgn'
  | 'out'
  | 'wgt';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** A ULID-like identifier: 10 characters of time (48 bits), 16 of randomness (80 bits). */
export function makeId(prefix: IdPrefix, nowMs: number, random: () => number): string {
  let time = '';
  let rest = nowMs;
  for (let i = 0; i < 10; i++) {
    time = ALPHABET[rest % 32] + time;
    rest = Math.floor(rest / 32);
  }
  let tail = '';
  for (let i = 0; i < 16; i++) tail += ALPHABET[Math.floor(random() * 32)];
  return `${prefix}_${time}${tail}`;
}

/** Ambient of a running process. */
export function systemAmbient(): Ambient {
  return { now: Date.now, random: Math.random, newId: (prefix) => makeId(prefix, Date.now(), cryptoRandom) };
}

/** Ambient of a test: a clock that moves only by `advance`, seeded numbers, ids in order. */
export function fixedAmbient(startMs = 1_750_000_000_000, seed = 1): Ambient & { advance(ms: number): void } {
  let now = startMs;
  const random = seededRandom(seed);
  return {
    now: () => now,
    random,
    newId: (prefix) => makeId(prefix, now, random),
    advance(ms) {
      now += ms;
    },
  };
}

/** mulberry32: a small generator with 32 bits of state, the same numbers for the same seed on every machine. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function cryptoRandom(): number {
  return (globalThis.crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 4294967296;
}
