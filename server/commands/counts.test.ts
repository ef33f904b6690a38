import { expect, it } from 'vitest';
import type { RunDetail } from '../core/views';
import { runProgress } from './progress';
import { reportOf } from './rollout';

it('counts what was dropped or stopped apart from what failed, as the page of the run does', () => {
  const run = {
    runId: 'run_1',
    taskCount: 4,
    groupSize: 4,
    meanReward: null,
    createdAtMs: 0,
    finishedAtMs: 10,
    counts: { queued: 0, running: 0, completed: 3, truncated: 1, failed: 1, timed_out: 2, cancelled: 9 },
  } as RunDetail;
  expect(reportOf(run)).toMatchObject({ trajectories: 16, completed: 4, failed: 3, cancelled: 9 });
  const { line, share } = runProgress(run);
  expect(line).toMatch(/ 16\/16 trajectories · 3 failed · 9 cancelled$/);
  expect(share).toBe(1);
});
