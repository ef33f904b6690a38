/** The tutorial's dataset, read and written as the product keeps it: a task a line. */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { SearchTask } from './search-task';

const line = z.object({
  task_id: z.string(),
  prompt: z.string(),
  answer: z.object({ number: z.int() }),
  metadata: z.object({ secret: z.int(), low: z.int(), high: z.int() }),
  skill: z.literal('tutorial'),
});

/** Throws with zod's words when a line is no task of the tutorial. */
export async function readTasks(file: URL | string): Promise<SearchTask[]> {
  const text = await readFile(file, 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((row) => {
      const { prompt, metadata } = line.parse(JSON.parse(row));
      return { prompt, ...metadata };
    });
}
