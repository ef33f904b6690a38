/**
 * One reply of a server, checked and in neutral form. A generation is one of these, or several end to end when new
 * weights came while it ran.
 */
import { Invalid } from '../../core/errors';
import { MIXED, type WeightSpan } from '../../core/tokens/chunk';
import type { GenerateCall, RawGeneration } from './protocol';
import { fitName } from './server-words';

export interface GenerationPiece extends Omit<RawGeneration, 'promptTokens' | 'weightVersions'> {
  weightVersions: WeightSpan[];
}

/** Labels read around a reply; null where they were not needed. */
export interface LabelsAround {
  before: string | null;
  after: string | null;
}

/** More zeros than a model would be that sure of. */
const ZEROS = 8;

/** Throws Invalid for a reply whose tokens cannot be trusted. @param server names backend and address */
export function checkReply(raw: RawGeneration, call: GenerateCall, server: string): void {
  const n = raw.ids.length;
  if (raw.logprobs.length !== n)
    throw new Invalid(
      `${server} sent ${n} token ids but ${raw.logprobs.length} log-probabilities; nothing of it is used.`,
    );
  if (n === 0 && raw.finish === 'length')
    throw new Invalid(
      `${server} ended a generation at its limit without any token ids: it does not send them as asked.`,
    );
  if (raw.promptTokens !== null && raw.promptTokens !== call.promptIds.length)
    throw new Invalid(
      `${server} read ${raw.promptTokens} tokens where ${call.promptIds.length} were sent: it changes prompts (it adds a beginning-of-text token, or cuts what is long), so its tokens do not follow from the prompt. Start it without that.`,
      { promptTokens: raw.promptTokens, sent: call.promptIds.length },
    );
  const negative = raw.ids.findIndex((id) => id < 0);
  if (negative >= 0)
    throw new Invalid(
      `${server} sent the token id ${raw.ids[negative]} at position ${negative}; no vocabulary has it.`,
    );
  if (n > ZEROS && isFree(call) && raw.logprobs.every((value) => value === 0))
    throw new Invalid(
      `${server} sent 0 as the log-probability of all ${n} tokens it sampled at temperature 1: it does not compute them.`,
    );
}

/** Nothing shapes the distribution that is sampled from. */
function isFree({ options }: GenerateCall): boolean {
  const { temperature, topK, topP, minP, constraint } = options;
  return !constraint && temperature === 1 && topK === 0 && topP === 1 && minP === 0;
}

/** Which weights made which of n tokens. Where only labels are known and they differ, the tokens say that they are mixed. */
export function spansOf(
  said: RawGeneration['weightVersions'],
  n: number,
  { before, after }: LabelsAround,
  server: string,
): WeightSpan[] {
  if (Array.isArray(said) && said.length > 0) {
    let at = 0;
    for (const { version, start, end } of said) {
      fitName(server, 'weights', version);
      if (start !== at || end < start || end > n)
        throw new Invalid(`${server} says that the weights ${version} made the tokens ${start} to ${end} of ${n}.`);
      at = end;
    }
    if (at !== n) throw new Invalid(`${server} says of ${n - at} of ${n} tokens not which weights made them.`);
    return said.filter(({ start, end }) => end > start);
  }
  if (n === 0) return [];
  const last = typeof said === 'string' ? fitName(server, 'weights', said) : after;
  const version =
    before === null || last === null || before === last ? (last ?? before ?? 'unknown') : `${before}${MIXED}${last}`;
  return [{ version, start: 0, end: n }];
}

/** The first piece with the second behind it. */
export function joinPieces(first: GenerationPiece, second: GenerationPiece): GenerationPiece {
  const n = first.ids.length;
  if (n === 0) return second;
  const ids = new Int32Array(n + second.ids.length);
  ids.set(first.ids);
  ids.set(second.ids, n);
  const logprobs = new Float32Array(ids.length);
  logprobs.set(first.logprobs);
  logprobs.set(second.logprobs, n);
  const known = first.tokenBytes ?? second.tokenBytes;
  const unknown = (piece: GenerationPiece) => new Array<null>(piece.ids.length).fill(null);
  return {
    ...second,
    ids,
    logprobs,
    logprobKind: second.ids.length === 0 || first.logprobKind === second.logprobKind ? first.logprobKind : 'unknown',
    tokenBytes: known && [...(first.tokenBytes ?? unknown(first)), ...(second.tokenBytes ?? unknown(second))],
    weightVersions: joinSpans(first.weightVersions, second.weightVersions, n),
  };
}

function joinSpans(first: WeightSpan[], second: WeightSpan[], offset: number): WeightSpan[] {
  const joined = first.map((span) => ({ ...span }));
  for (const { version, start, end } of second) {
    const last = joined.at(-1);
    if (last && last.version === version && last.end === start + offset) last.end = end + offset;
    else joined.push({ version, start: start + offset, end: end + offset });
  }
  return joined;
}
