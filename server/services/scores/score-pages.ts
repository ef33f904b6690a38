/** Walks the token sequences of a run and writes their scores, a page at a time. */
import { setMaxListeners } from 'node:events';
import {
  type NewScores,
  readSequencesToScore,
  type ScoreCursor,
  type SequenceToScore,
  saveScores,
} from '../../../db/queries/scores';
import { isStudioError, type StudioError, Unavailable } from '../../core/errors';
import type { ScoreSource } from '../../core/tokens/chunk';
import type { InferenceBackend } from '../../inference/backend';
import type { ServiceContext } from '../context';
import { plainText, requireSameVocabulary } from './same-vocabulary';
import type { ScoreRunRequest } from './score-inputs';
import type { ScoreProgress } from './score-jobs';
import { scoreSequence } from './score-sequence';

/** Sequences read and scored at once: bounds the memory, whatever the run's size. */
const PAGE = 32;
/** Attempts at a page whose weights changed while it was scored. */
const ATTEMPTS = 5;

export async function scorePages(
  ctx: ServiceContext,
  backend: InferenceBackend,
  request: ScoreRunRequest,
  progress: ScoreProgress,
  signal: AbortSignal,
): Promise<void> {
  const { db } = ctx.database;
  let compared = false;
  let after: ScoreCursor | null = null;
  for (;;) {
    signal.throwIfAborted();
    const page: Awaited<ReturnType<typeof readSequencesToScore>> = await readSequencesToScore(db, {
      runId: request.runId,
      after,
      limit: PAGE,
    });
    if (page.rows.length === 0) return;
    after = page.next;
    const exact = page.rows.filter(({ approximate }) => !approximate);
    const [sample] = exact;
    if (!compared && sample) {
      await compareVocabulary(backend, sample);
      compared = true;
    }
    const scored = await scorePage(ctx, backend, request, exact, signal);
    progress.approximate += page.rows.length - exact.length;
    progress.alreadyScored += exact.length - scored;
    progress.scored += scored;
    progress.done += page.rows.length;
    progress.total = Math.max(progress.total, progress.done);
  }
}

/** Text to tokens and back would say nothing of ids that no text has; ids out of range are for the server to refuse. */
async function compareVocabulary(backend: InferenceBackend, { sequence }: SequenceToScore): Promise<void> {
  const text = plainText(sequence);
  if (text === '') return;
  requireSameVocabulary(backend.name, sequence, await backend.tokenize(text, { special: false }));
}

/** Scores of one page are of one weight version: a page whose weights changed meanwhile is scored again. Returns how many. */
async function scorePage(
  ctx: ServiceContext,
  backend: InferenceBackend,
  request: ScoreRunRequest,
  rows: readonly SequenceToScore[],
  signal: AbortSignal,
): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const by: ScoreSource = {
      backend: backend.name,
      weightVersion: await backend.weightVersion(),
      atMs: ctx.ambient.now(),
      ...(request.alternatives > 0 ? { alternatives: request.alternatives } : {}),
      ...(request.entropy ? { entropy: true } : {}),
    };
    const wanted = request.again ? rows : rows.filter((row) => !isScored(row, request, by));
    if (wanted.length === 0) return 0;
    const scores = await scoreAll(backend, request, wanted, signal);
    signal.throwIfAborted();
    if ((await backend.weightVersion()) !== by.weightVersion) continue;
    await ctx.database.db.transaction((tx) => saveScores(tx, { as: request.as, by, scores }));
    return wanted.length;
  }
  throw new Unavailable(
    `The weights of ${backend.name} changed ${ATTEMPTS} times while one page was scored. Score when they stand still.`,
  );
}

/** Scored by the same weights, with at least what is asked for now. */
function isScored(row: SequenceToScore, { as, alternatives, entropy }: ScoreRunRequest, by: ScoreSource): boolean {
  const [own, other] = as === 'ref' ? [row.refScoredBy, row.policyScoredBy] : [row.policyScoredBy, row.refScoredBy];
  if (own?.backend !== by.backend || own.weightVersion !== by.weightVersion) return false;
  if (alternatives === 0 && !entropy) return true;
  // Extras are kept of the last scoring that asked for them; another column's may have taken their place.
  const replaced = other !== null && other.atMs >= own.atMs && (other.alternatives ?? other.entropy) !== undefined;
  return !replaced && (own.alternatives ?? 0) >= alternatives && (own.entropy === true || !entropy);
}

/** The first failure stops the others and names its sequence. */
async function scoreAll(
  backend: InferenceBackend,
  { alternatives, entropy }: ScoreRunRequest,
  rows: readonly SequenceToScore[],
  signal: AbortSignal,
): Promise<NewScores[]> {
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  // Every sequence listens to it.
  setMaxListeners(0, stop);
  const wishes = { alternatives, entropy, signal: stop };
  return Promise.all(
    rows.map(async ({ trajectoryId, sequence }) => {
      try {
        const scores = await scoreSequence(backend, sequence, wishes);
        return { trajectoryId, sequenceIndex: sequence.index, ...scores };
      } catch (error) {
        failed.abort(error);
        throw isStudioError(error) ? withPlace(error, trajectoryId, sequence.index) : error;
      }
    }),
  );
}

function withPlace(error: StudioError, trajectoryId: string, sequenceIndex: number): StudioError {
  const Same = error.constructor as new (...args: ConstructorParameters<typeof Unavailable>) => StudioError;
  const message = `Trajectory ${trajectoryId}, token sequence ${sequenceIndex}, could not be scored: ${error.message}`;
  return new Same(message, { ...error.details, trajectoryId, sequenceIndex }, { cause: error });
}
