/** What callers may send to the verbs of runs, for the router, the HTTP interface and the command line alike. */
import { z } from 'zod';
import { RUN_STATUSES } from '../../core/vocabulary';
import { cursorSchema, idSchema, limitSchema, nameSchema } from '../inputs';

export const runIdInput = z.object({ runId: idSchema('run') });
export const listRunsInput = z.object({
  cursor: cursorSchema,
  limit: limitSchema,
  status: z.enum(RUN_STATUSES).optional(),
});
export const startRunInput = z.object({
  /** Name of a skill; its newest version is taken unless `skillVersion` names one. */
  skill: nameSchema,
  skillVersion: z.number().int().min(1).optional(),
  dataset: nameSchema,
  /** Name of a backend; the default one when absent. */
  backend: nameSchema.optional(),
  groupSize: z.number().int().min(1).max(1024).default(8),
  /** How many tasks of the dataset, from its start; all when absent. */
  tasks: z.number().int().min(1).max(100_000).optional(),
  seed: z.number().int().min(0).max(2_147_483_647).optional(),
  name: nameSchema.optional(),
  temperature: z.number().min(0).max(5).optional(),
  /** Name of the backend that judges `reasoning_quality`. */
  judge: nameSchema.optional(),
  /** Leave groups whose advantages are all 0 out of exports; they are kept, shown and counted all the same. */
  dropNoSignal: z.boolean().optional(),
  /** Weight versions a trajectory may be behind; no limit when absent. */
  maxStaleness: z.number().int().min(0).max(1000).optional(),
  /** What becomes of a trajectory that is older: begun anew, or dropped. */
  stale: z.enum(['redo', 'drop']).optional(),
});
export const feedInput = z.object({
  runId: idSchema('run'),
  /** The number of the last event the caller has; events after it are sent. */
  lastEventId: z
    .string()
    .regex(/^\d{1,15}$/, 'is not an event number')
    .nullish(),
});
export const exportRunInput = runIdInput.extend({
  /** Approximate sequences and other kinds of log-probabilities too. */
  all: z.boolean().default(false),
});
