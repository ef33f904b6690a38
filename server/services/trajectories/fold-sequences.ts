/** The token sequences of a trajectory that still runs, put together from what its events brought so far. */
import type { SessionEvent } from '../../core/events';
import { SequenceBuilder } from '../../core/tokens/builder';
import type { TokenSequence } from '../../core/tokens/chunk';
import { LOGPROB_KINDS, type LogprobKind } from '../../core/vocabulary';
import { asCount, asObject, asWord } from './read-json';

export interface RunningSequence {
  sequence: TokenSequence;
  logprobKind: LogprobKind;
  /** Sampled by a server that gives no token ids. */
  approximate: boolean;
}

/** In order of their index. A chunk that does not fit is left out, and so is what follows it in its sequence. */
export function foldSequences(events: Iterable<SessionEvent>): RunningSequence[] {
  const folded: { builder: SequenceBuilder; kinds: Set<LogprobKind>; approximate: boolean; broken: boolean }[] = [];
  for (const event of events) {
    const data = asObject(event.data);
    if (event.type === 'prompt.rendered')
      folded.push({
        builder: new SequenceBuilder(asCount(data.sequenceIndex) ?? folded.length),
        kinds: new Set(),
        approximate: false,
        broken: false,
      });
    const current = folded.at(-1);
    if (!current || current.broken) continue;
    if (event.type === 'generation.completed') {
      current.kinds.add(asWord(data.logprobKind, LOGPROB_KINDS, 'unknown'));
      current.approximate ||= data.approximate === true;
    }
    const start = current.builder.length;
    try {
      if (event.tokens) current.builder.append(event.tokens);
      for (const { version, start: from, end } of event.weights ?? [])
        current.builder.appendWeights({ version, start: start + from, end: start + end });
    } catch {
      current.broken = true;
    }
  }
  return folded.map(({ builder, kinds, approximate }) => {
    const [only] = kinds;
    return { sequence: builder.finish(), logprobKind: kinds.size === 1 && only ? only : 'unknown', approximate };
  });
}
