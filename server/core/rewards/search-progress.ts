/** How much of the interval that hides a number each probe rules out; for tasks with metadata.low and metadata.high. */
import type { ToolCall, ToolResult } from '../events';
import type { Task } from '../skills/skill';
import type { StepScorer } from './scorer';

const PROBE = 'probe';

/** Both ends included. */
interface Interval {
  low: number;
  high: number;
}

/** A probe scores 1 - size after / size before; 1 when it found the number, 0 outside the interval. Mean over the calls. */
export const searchProgress: StepScorer = {
  name: 'search_progress',
  scores: 'step',
  lacks: (_skill, task) => (startOf(task) ? null : 'has no whole numbers metadata.low and metadata.high'),
  score({ task, calls, results, history }) {
    const interval = startOf(task) ?? { low: 0, high: -1 };
    for (const step of history) for (const call of step.actions) narrow(interval, call, step.results);
    let sum = 0;
    for (const call of calls) sum += narrow(interval, call, results);
    return sum / calls.length;
  },
};

/** Takes in what a call revealed; returns its score. A call that told nothing leaves the interval and scores 0. */
function narrow(interval: Interval, call: ToolCall, results: readonly ToolResult[]): number {
  const n = call.tool === PROBE ? call.arguments?.n : undefined;
  const result = results.find((candidate) => candidate.callIndex === call.index);
  if (typeof n !== 'number' || !Number.isInteger(n) || result?.status !== 'success') return 0;
  if (n < interval.low || n > interval.high) return 0;
  const before = interval.high - interval.low + 1;
  const hint = typeof result.value === 'string' ? result.value : result.observation.trim();
  if (hint === 'found') {
    interval.low = interval.high = n;
    return 1;
  }
  if (hint === 'higher') interval.low = n + 1;
  else if (hint === 'lower') interval.high = n - 1;
  else return 0;
  return 1 - Math.max(0, interval.high - interval.low + 1) / before;
}

function startOf(task: Task): Interval | null {
  const { low, high } = task.metadata;
  if (typeof low !== 'number' || typeof high !== 'number') return null;
  return Number.isInteger(low) && Number.isInteger(high) && low <= high ? { low, high } : null;
}
