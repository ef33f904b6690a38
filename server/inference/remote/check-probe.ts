/** What the items of the checklist share: the server that is checked, and asking it for tokens within a time. */
import type { Ambient } from '../../core/ambient';
import { type StudioError, TimedOut } from '../../core/errors';
import type { CheckItem } from '../../core/inference';
import type { SamplingOptions } from '../backend';
import type { Recorder } from './check-recorder';
import { checkReply } from './generation-piece';
import type { LocalTokenizer } from './local-tokenizer';
import type { GenerateCall, RawGeneration, ServerFacts, ServerProtocol } from './protocol';
import { TokenText } from './token-text';

export interface Probe {
  http: Recorder;
  protocol: ServerProtocol;
  facts: ServerFacts;
  localTokenizer: LocalTokenizer | null;
  /** Name and address, at the beginning of a sentence. */
  server: string;
  /** Opened by the item about the tokenizer; null where that failed. */
  text: TokenText | null;
  /** Ids to go on from. */
  promptIds: Int32Array;
  ambient: Ambient;
  signal: AbortSignal | undefined;
}

/** What one item found. `about`: words by which the exchange to show is found. */
export type Verdict = Pick<CheckItem, 'status' | 'says'> & { about?: string };

const PROBE_MS = 60_000;
/** Of a server that can be paused and does not tell whether it is. */
export const PERHAPS_PAUSED =
  'A paused server looks like that, and this one does not tell. If somebody paused it, resume it (SGLang: POST /continue_generation; a backend of this studio: studio resume NAME) and check again. Otherwise look into its log.';
const SAMPLING: SamplingOptions = { maxTokens: 8, temperature: 1, topP: 1, topK: 0, minP: 0, seed: 1, stop: [] };

/** One generation, its reply held against what was asked. Throws from the error family, TimedOut after a minute. */
export async function sample(
  probe: Probe,
  changes: Partial<SamplingOptions> = {},
  hint?: string,
): Promise<RawGeneration> {
  const { http, protocol, facts, promptIds, server } = probe;
  const work = async (signal: AbortSignal) => {
    const call: GenerateCall = {
      promptIds,
      options: { ...SAMPLING, ...changes },
      requestId: `check-${Math.floor(probe.ambient.random() * 1e8)
        .toString()
        .padStart(8, '0')}`,
      affinityKey: 'check',
      signal,
    };
    const raw = await protocol.generate(http, facts, call);
    checkReply(raw, call, server);
    return raw;
  };
  return within(probe, work, hint);
}

/**
 * Work that is stopped after a minute: a server that hangs must not hold the check.
 * @param hint what may be the reason, as sentences behind the one that says so
 */
export async function within<Result>(
  { server, signal }: Pick<Probe, 'server' | 'signal'>,
  work: (signal: AbortSignal) => Promise<Result>,
  hint = '',
): Promise<Result> {
  const late = new AbortController();
  const says = [`${server} took a request and did not answer within ${PROBE_MS / 1000} s.`, hint];
  const reason: StudioError = new TimedOut(says.join(' ').trim());
  const timer = setTimeout(() => late.abort(reason), PROBE_MS);
  try {
    return await work(signal ? AbortSignal.any([signal, late.signal]) : late.signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Text of its own, so that every request is asked and recorded again. Throws Invalid where there is no way from text to ids. */
export function textOf({ protocol, http, facts, localTokenizer }: Probe): TokenText {
  return TokenText.open({ protocol, http, facts, localTokenizer });
}
