/** What callers may send to the verbs of scores. */
import { z } from 'zod';
import { SCORE_TARGETS } from '../../core/views';
import { idSchema, nameSchema } from '../inputs';

export const scoreRunInput = z.object({
  runId: idSchema('run'),
  /** Which column is filled: the frozen reference's or that of the policy being trained. */
  as: z.enum(SCORE_TARGETS),
  /** Name of the backend whose weights score. */
  backend: nameSchema,
  /** Likeliest tokens to keep for each position. */
  alternatives: z.number().int().min(0).max(5).default(0),
  entropy: z.boolean().default(false),
  /** Also what the same weights have scored before. */
  again: z.boolean().default(false),
});
export type ScoreRunRequest = z.output<typeof scoreRunInput>;
