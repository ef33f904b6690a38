/** Made-up but lifelike token data in wire form: a ReAct trajectory as long as wanted, the same for the same length. */
import { encodeTokens } from '../server/core/tokens/wire';
import { type SegmentKind, segmentCode } from '../server/core/vocabulary';

const WORDS =
  ' the| number| is| higher| than| lower| so| probe| next| between| and| I| should| ask| again|ing|ed| interval| half| left| remaining| candidate| guess|,|.| 42| 17| 128| reward| token| policy'.split(
    '|',
  );
const JSON_PIECES = ['{"', 'tool', '":"', 'probe', '","', 'args', '":{"', 'n', '":', '64', '}}'];
const ODD: (string | number[])[] = [
  '中文',
  '字符',
  [0xf0, 0x9f],
  [0x98, 0x80],
  '\u202e',
  '\u001b[31m',
  'é',
  'e\u0301',
  'مرحبا',
  '<img src=x onerror=alert(1)>',
  '👩‍👩‍👧',
  '\t',
  [0xff],
  '\u200b',
];

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 16807) % 2147483647;
    return state / 2147483647;
  };
}

export interface MadeTokens {
  wire: Uint8Array;
  advantages: number[];
  stepRewards: number[];
}

export function makeTokens(count: number, options: { scored?: boolean; linesOnly?: boolean } = {}): MadeTokens {
  const random = generator(7);
  const encoder = new TextEncoder();
  const ids = new Int32Array(count);
  const logprobs = new Float32Array(count).fill(Number.NaN);
  const policy = new Float32Array(count).fill(Number.NaN);
  const ref = new Float32Array(count).fill(Number.NaN);
  const mask = new Uint8Array(count);
  const stepIndex = new Int32Array(count);
  const segment = new Uint8Array(count);
  const byteEnds = new Uint32Array(count);
  const bytes = new Uint8Array(count * 32);
  const advantages: number[] = [];
  const stepRewards: number[] = [];
  let n = 0;
  let at = 0;
  const put = (piece: string | number[], kind: SegmentKind, step: number, sampled: boolean): void => {
    if (n === count) return;
    const own = typeof piece === 'string' ? encoder.encode(piece) : Uint8Array.from(piece);
    bytes.set(own, at);
    at += own.length;
    byteEnds[n] = at;
    ids[n] = Math.floor(random() * 150_000);
    segment[n] = segmentCode(kind);
    stepIndex[n] = step;
    if (sampled) {
      mask[n] = 1;
      const value = -(random() ** 6) * 6 - 0.0001;
      logprobs[n] = value;
      policy[n] = value + (random() - 0.5) * 0.2;
      ref[n] = value + (random() - 0.5) * 0.3;
    }
    n++;
  };
  const words = (many: number, kind: SegmentKind, step: number, sampled: boolean): void => {
    for (let k = 0; k < many; k++) put(WORDS[Math.floor(random() * WORDS.length)] as string, kind, step, sampled);
  };
  if (options.linesOnly) while (n < count) put('\n', 'thought', 0, true);
  put('<|im_start|>', 'template', -1, false);
  put('system\n', 'template', -1, false);
  words(60, 'system', -1, false);
  put('<|im_end|>', 'template', -1, false);
  put('\n', 'template', -1, false);
  put('<|im_start|>', 'template', -1, false);
  put('user\n', 'template', -1, false);
  words(24, 'user', -1, false);
  put('<|im_end|>', 'template', -1, false);
  put('\n<|im_start|>assistant\n', 'template', -1, false);
  for (let step = 0; n < count; step++) {
    advantages.push((random() * 2 - 1) * 1.8);
    stepRewards.push(random());
    put('Thought', 'thought', step, true);
    put(':', 'thought', step, true);
    words(20 + Math.floor(random() * 40), 'thought', step, true);
    if (step % 3 === 1) for (const piece of ODD) put(piece, 'thought', step, true);
    put('\n', 'thought', step, true);
    put('Action', 'action', step, true);
    put(':', 'action', step, true);
    for (const piece of JSON_PIECES) put(piece, 'action', step, true);
    put('\n', 'action', step, true);
    put('Observ', 'stop', step, true);
    put('ation:', 'stop', step, true);
    words(12 + Math.floor(random() * 60), 'observation', step, false);
    if (step % 4 === 2) {
      put(' <img src=x onerror=alert(1)>', 'observation', step, false);
      put(' [x](javascript:alert(1))', 'observation', step, false);
    }
    if (step % 5 === 3) for (const piece of ODD) put(piece, 'observation', step, false);
    put('\n', 'observation', step, false);
  }
  const scored = options.scored ?? true;
  return {
    wire: encodeTokens({
      ids,
      logprobs,
      mask,
      stepIndex,
      segment,
      bytes: bytes.slice(0, at),
      byteEnds,
      policyLogprobs: scored ? policy : null,
      refLogprobs: scored ? ref : null,
    }),
    advantages,
    stepRewards,
  };
}
