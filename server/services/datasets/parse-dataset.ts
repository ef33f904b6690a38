/** Reads the JSON Lines of a dataset: every line fits, or none is taken, and the sentence names the line. */
import { z } from 'zod';
import { Invalid } from '../../core/errors';
import { MAX_JSON_DEPTH, nestsDeeperThan } from '../../core/json-depth';
import type { Task } from '../../core/skills/skill';
import type { Json, JsonObject } from '../../core/vocabulary';
import { describeIssues, isStorable, nameSchema, UNSTORABLE } from '../inputs';
import { MAX_DATASET_TASKS, MAX_LINE_CHARACTERS } from './dataset-inputs';

const isObject = (value: unknown): value is JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Keys it does not know are ignored. Values come from JSON.parse, so what is unknown is JSON. */
const lineSchema = z.object({
  task_id: z.union([z.string().min(1).max(500).refine(isStorable, UNSTORABLE), z.number().int()], {
    error: 'must be a text of 1 to 500 characters or a whole number',
  }),
  prompt: z.string().min(1, 'must not be empty').refine(isStorable, UNSTORABLE),
  answer: z.unknown().optional(),
  metadata: z
    .unknown()
    .refine((value) => value === undefined || value === null || isObject(value), 'must be an object')
    .optional(),
  skill: nameSchema.nullish(),
});

/** Throws Invalid with the line's number, counted from 1 with empty lines. At least one task, no id twice. */
export function parseDataset(jsonl: string): Task[] {
  const tasks: Task[] = [];
  const lineOf = new Map<string, number>();
  for (const { text, lineNumber } of linesOf(jsonl)) {
    if (tasks.length >= MAX_DATASET_TASKS)
      throw new Invalid(`The dataset has more than ${MAX_DATASET_TASKS} tasks. Split it.`, { lineNumber });
    const task = parseLine(text, lineNumber);
    const earlier = lineOf.get(task.taskId);
    if (earlier !== undefined)
      throw new Invalid(
        `Line ${lineNumber} has the task_id of line ${earlier}: ${JSON.stringify(task.taskId)}. Each task needs its own.`,
      );
    lineOf.set(task.taskId, lineNumber);
    tasks.push(task);
  }
  if (tasks.length === 0) throw new Invalid('The dataset has no task. It needs one JSON object a line.');
  return tasks;
}

function* linesOf(jsonl: string): Generator<{ text: string; lineNumber: number }> {
  let start = jsonl.startsWith('\ufeff') ? 1 : 0;
  for (let lineNumber = 1; start < jsonl.length; lineNumber++) {
    const found = jsonl.indexOf('\n', start);
    const end = found === -1 ? jsonl.length : found;
    if (end - start > MAX_LINE_CHARACTERS)
      throw new Invalid(`Line ${lineNumber} is longer than ${MAX_LINE_CHARACTERS} characters.`);
    const text = jsonl.slice(start, end).trim();
    if (text) yield { text, lineNumber };
    start = end + 1;
  }
}

function parseLine(text: string, lineNumber: number): Task {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Invalid(
      `Line ${lineNumber} is not JSON: ${error instanceof Error ? error.message : 'it cannot be read'}.`,
    );
  }
  if (!isObject(value)) throw new Invalid(`Line ${lineNumber} is no JSON object.`);
  if (nestsDeeperThan(MAX_JSON_DEPTH, value))
    throw new Invalid(`Line ${lineNumber} nests lists or objects more than ${MAX_JSON_DEPTH} deep.`);
  const parsed = lineSchema.safeParse(value);
  if (!parsed.success) throw new Invalid(`Line ${lineNumber}: ${describeIssues(parsed.error)}`);
  const { task_id, prompt, answer, metadata, skill } = parsed.data;
  return {
    taskId: String(task_id),
    prompt,
    answer: (answer ?? null) as Json,
    metadata: (metadata ?? {}) as JsonObject,
    skill: skill ?? null,
  };
}
