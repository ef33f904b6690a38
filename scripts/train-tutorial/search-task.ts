/** The tutorial's game: a whole number is hidden between two bounds; `probe` says whether it is higher or lower. */
import type { ToolCall } from '../../server/core/events';
import type { Task } from '../../server/core/skills/skill';
import { ProbeTool } from '../../server/tools/probe';

export interface SearchTask {
  prompt: string;
  secret: number;
  low: number;
  high: number;
}

/** Bounds of the tasks that the policy learns; outside them it guesses. */
export const SMALLEST_LOW = 1;
export const LARGEST_LOW = 9;
export const SMALLEST_SPAN = 12;
export const LARGEST_SPAN = 16;

const WORDINGS: ((low: number, high: number) => string)[] = [
  (low, high) => `Find my number between ${low} and ${high}.`,
  (low, high) => `I picked a number from ${low} to ${high}. Which one is it?`,
  (low, high) => `A number from ${low} to ${high} is hidden. Find it.`,
];

/** A task drawn uniformly: wording, bounds and hidden number. */
export function drawTask(random: () => number): SearchTask {
  const low = between(random, SMALLEST_LOW, LARGEST_LOW);
  const high = low + between(random, SMALLEST_SPAN, LARGEST_SPAN) - 1;
  const wording = WORDINGS[between(random, 0, WORDINGS.length - 1)] as (typeof WORDINGS)[number];
  return { prompt: wording(low, high), secret: between(random, low, high), low, high };
}

/** A whole number from `low` to `high`, both included. */
export function between(random: () => number, low: number, high: number): number {
  return low + Math.floor(random() * (high - low + 1));
}

const tool = new ProbeTool();
/** The tool as the prompt describes it. */
export const PROBE_TOOL = tool.getSchema();

/** What the tool says: where the hidden number lies, seen from `n`. */
export function probe(secret: number, n: number): 'higher' | 'lower' | 'found' {
  return n === secret ? 'found' : n < secret ? 'higher' : 'lower';
}

/** What the harness puts behind a call, and the number that was asked for; null when the call is refused. */
export function answerCall(secret: number, call: ToolCall): { observation: string; n: number | null } {
  const refusal =
    call.error ??
    (call.tool === PROBE_TOOL.name
      ? tool.validate(call.arguments ?? {})
      : `There is no tool ${JSON.stringify(call.tool)}. Available: ${PROBE_TOOL.name}.`);
  if (refusal !== null) return { observation: `error: ${refusal}`, n: null };
  const n = call.arguments?.n as number;
  return { observation: probe(secret, n), n };
}

/** The task as a line of a dataset. */
export function datasetTask(task: SearchTask, taskId: string): Task {
  const { secret, low, high } = task;
  return {
    taskId,
    prompt: task.prompt,
    answer: { number: secret },
    metadata: { secret, low, high },
    skill: 'tutorial',
  };
}
