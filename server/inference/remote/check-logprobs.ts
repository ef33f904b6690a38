/** Items of the checklist about log-probabilities: what the numbers of sampled tokens are, and whether given tokens can be scored. */
import { Invalid, isStudioError } from '../../core/errors';
import type { LogprobKind } from '../../core/vocabulary';
import { type Probe, sample, type Verdict, within } from './check-probe';
import type { RawGeneration } from './protocol';
import { shownNumber } from './server-words';

/** Two numbers of the same token may differ so much by the arithmetic of 16-bit weights in another batch. */
const SAME = 0.02;
/** A scored token is computed in one pass and a sampled one in many: a little more. */
const CLOSE = 0.1;
const FAR = 1;
const UNKNOWN =
  'But a service of this kind promises nothing about them, so they are kept as of an unknown kind, and nothing from it can be trained on as sampled.';

/**
 * The likeliest tokens at temperature 1 and at 2. Numbers that stay are raw; those that change are of the distribution that
 * was sampled from, and the label of such a reply must say so.
 */
export async function checkLogprobKind(probe: Probe): Promise<Verdict & { kind: LogprobKind }> {
  const free = await sample(probe);
  const kind = free.logprobKind;
  const missing = free.logprobs.findIndex((value) => Number.isNaN(value));
  if (missing >= 0) {
    const says = `It gives no log-probability for the sampled token ${missing}`;
    if (probe.protocol.kind === 'openai')
      return { kind: 'unknown', status: 'warn', says: `${says}, so nothing from it can be trained on as sampled.` };
    throw new Invalid(`${says}; start the server with log-probabilities enabled.`);
  }
  const above = free.logprobs.findIndex((value) => value > 1e-4);
  if (above >= 0)
    throw new Invalid(
      `The number of the sampled token ${above} is ${shownNumber(number(free, above))}: no log-probability is above 0. Perhaps the server was started to give logits.`,
    );
  let cool: RawGeneration;
  let warm: RawGeneration;
  try {
    [cool, warm] = await Promise.all([sample(probe, { topK: 1 }), sample(probe, { topK: 1, temperature: 2 })]);
  } catch (error) {
    if (!isStudioError(error) || error.code !== 'invalid') throw error;
    return {
      kind: 'unknown',
      status: 'warn',
      says: `What its log-probabilities are could not be compared: ${error.message}`,
    };
  }
  const shared = sharedTokens(cool, warm);
  if (shared === 0)
    return { kind, status: 'warn', says: 'What its log-probabilities are could not be compared: it ended at once.' };
  const change = Math.max(...Array.from({ length: shared }, (_, k) => Math.abs(number(cool, k) - number(warm, k))));
  // Numbers from behind the filter, where one token was left, are 0 whatever the temperature is.
  const masked = allZero(cool) && allZero(warm) && !allZero(free);
  if (change <= SAME && !masked) {
    const same = `Sampled at temperature 1 and at 2, ${shared} tokens have the same log-probabilities`;
    return kind === 'unknown'
      ? { kind, status: 'warn', says: `${same}, as the model's own (raw) have. ${UNKNOWN}` }
      : { kind, status: 'pass', says: `${same}: they are the model's own (raw).` };
  }
  const what = masked
    ? 'Where a filter leaves one token only, its log-probability is 0: they are those of the filtered distribution'
    : `Sampled at temperature 1 and at 2, the same token has log-probabilities that differ by ${shownNumber(change)}: they are those after temperature`;
  if (warm.logprobKind === 'raw')
    throw new Invalid(
      `${what}, but a server of this kind is taken to give the model's own. Start it with raw log-probabilities.`,
    );
  if (kind === 'unknown') return { kind, status: 'warn', says: `${what}. ${UNKNOWN}` };
  const then = kind === 'raw' ? "At temperature 1 without filters they are the model's own." : 'The data says so.';
  return { kind, status: 'pass', says: `${what}. ${then}` };
}

function sharedTokens(a: RawGeneration, b: RawGeneration): number {
  let shared = 0;
  while (shared < a.ids.length && shared < b.ids.length && a.ids[shared] === b.ids[shared]) shared++;
  return shared;
}

const number = ({ logprobs }: RawGeneration, k: number): number => logprobs[k] ?? Number.NaN;
const allZero = ({ logprobs }: RawGeneration): boolean => logprobs.every((value) => value > -1e-4);

/** Sampled tokens scored again: the numbers must be those that came with them. */
export async function checkScoring(probe: Probe): Promise<Verdict & { canScore: boolean; entropy: boolean }> {
  const { protocol, http, facts, promptIds } = probe;
  if (!protocol.score)
    return {
      canScore: false,
      entropy: false,
      status: 'absent',
      says: 'It cannot score given tokens; score with another backend that serves the same weights.',
    };
  const sampled = await sample(probe, { seed: 5 });
  if (sampled.ids.length === 0)
    return { canScore: false, entropy: false, status: 'warn', says: 'It ended at once, so nothing could be scored.' };
  let scores: Awaited<ReturnType<NonNullable<typeof protocol.score>>>;
  try {
    const call = { promptIds, completionIds: sampled.ids, alternatives: 2, entropy: true };
    scores = await within(probe, (signal) => protocol.score?.(http, facts, { ...call, signal }) ?? Promise.reject());
  } catch (error) {
    if (!isStudioError(error)) throw error;
    return { canScore: false, entropy: false, status: 'warn', says: `It cannot score given tokens: ${error.message}` };
  }
  if (!scores)
    return {
      canScore: false,
      entropy: false,
      status: 'warn',
      says: 'Its scoring was stopped by somebody else; check again.',
    };
  const entropy = scores.entropy !== null;
  if (scores.logprobs.length !== sampled.ids.length || scores.logprobs.some((value) => !(value <= 1e-4)))
    throw new Invalid(
      `It scored ${sampled.ids.length} tokens with ${scores.logprobs.length} numbers, of which some are missing or above 0.`,
    );
  const difference = Math.max(...scores.logprobs.map((value, k) => Math.abs(value - number(sampled, k))));
  const says = `${sampled.ids.length} tokens scored again differ by at most ${shownNumber(difference)} from the numbers they were sampled with`;
  if (sampled.logprobKind !== 'raw')
    return { canScore: true, entropy, status: 'pass', says: `${says}, which are not the model's own.` };
  if (difference <= CLOSE) return { canScore: true, entropy, status: 'pass', says: `${says}.` };
  if (difference <= FAR)
    return { canScore: true, entropy, status: 'warn', says: `${says}: more than 16-bit arithmetic explains.` };
  throw new Invalid(`${says}: what it scores is not what it samples from.`);
}
