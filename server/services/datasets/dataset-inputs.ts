/** What callers may send to the verbs of datasets. */
import { z } from 'zod';
import { cursorSchema, limitSchema, nameSchema } from '../inputs';

export const MAX_DATASET_TASKS = 200_000;
export const MAX_LINE_CHARACTERS = 1_000_000;
/** Characters of a whole import. */
export const MAX_DATASET_CHARACTERS = 64_000_000;

export const listTasksInput = z.object({ name: nameSchema, cursor: cursorSchema, limit: limitSchema });
export const importDatasetInput = z.object({
  name: nameSchema,
  /** One JSON object a line: task_id, prompt, and optionally answer, metadata, skill. */
  jsonl: z.string().max(MAX_DATASET_CHARACTERS, 'is larger than 64 million characters: split the dataset'),
});
