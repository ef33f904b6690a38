/** What callers may send to the verbs of datasets. */
import { z } from 'zod';
import type { JsonObject } from '../../core/vocabulary';
import { cursorSchema, limitSchema, nameSchema } from '../inputs';

export const MAX_DATASET_TASKS = 200_000;
export const MAX_LINE_CHARACTERS = 1_000_000;
/** Characters of a whole import. */
export const MAX_DATASET_CHARACTERS = 64_000_000;

export const listTasksInput = z.object({ name: nameSchema, cursor: cursorSchema, limit: limitSchema });
export const importDatasetInput = z.object({
  name: nameSchema,
  jsonl: z.string().max(MAX_DATASET_CHARACTERS, 'is larger than 64 million characters: split the dataset'),
});

const json = z.json();
/** One line of a dataset. Keys it does not know are ignored. */
export const taskLine = z.object({
  task_id: z.union([z.string().min(1).max(500), z.number().int().transform(String)]),
  prompt: z.string().min(1),
  answer: json.nullish().transform((answer) => answer ?? null),
  metadata: z
    .record(z.string(), json)
    .nullish()
    .transform((metadata): JsonObject => (metadata ?? {}) as JsonObject),
  skill: nameSchema.nullish().transform((skill) => skill ?? null),
});
