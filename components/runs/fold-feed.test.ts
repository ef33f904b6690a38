import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunDetail, RunFeedEntry, TrajectoryRow } from '@/server/core/views';
import { asksForWholeAnswer, foldFeed, stillWorth } from './fold-feed';

function row(trajectoryId: string, member: number): TrajectoryRow {
  return {
    trajectoryId,
    groupId: 'g',
    member,
    status: 'queued',
    reward: null,
    success: null,
    stepRewards: [],
    advantages: null,
    generatedTokens: null,
    totalTokens: null,
    endReason: null,
    errorMessage: null,
    toolFailures: {},
    startedAtMs: null,
    finishedAtMs: null,
  };
}

const group = (groupId: string, position: number, trajectories: TrajectoryRow[]) => ({
  groupId,
  position,
  taskId: `task ${position}`,
  prompt: '',
  completed: false,
  meanReward: null,
  stdReward: null,
  hasSignal: null,
  trajectories,
});

const detail: RunDetail = {
  runId: 'run',
  name: 'run',
  status: 'queued',
  skillName: 's',
  skillVersion: 1,
  datasetName: 'd',
  backendName: 'b',
  groupSize: 2,
  taskCount: 2,
  counts: { queued: 4, running: 0, completed: 0, truncated: 0, failed: 0, cancelled: 0, timed_out: 0 },
  meanReward: null,
  successRate: null,
  createdAtMs: 0,
  finishedAtMs: null,
  seed: 1,
  options: {},
  notices: [],
  error: null,
  groups: [group('g0', 0, [row('a', 0), row('b', 1)]), group('g1', 1, [row('c', 0), row('d', 1)])],
  groupsWithoutSignal: 0,
  sandboxLevels: [],
  generatedTokens: 0,
  redone: 0,
  eventSeq: 10,
};

const entry = (seq: number, type: string, rest: Partial<RunFeedEntry> = {}): RunFeedEntry => ({
  seq,
  atMs: seq * 100,
  type,
  trajectoryId: null,
  stepNumber: null,
  reward: null,
  status: null,
  ...rest,
});
const step = (seq: number, trajectoryId: string, stepNumber: number, reward: number) =>
  entry(seq, 'step.completed', { trajectoryId, stepNumber, reward });

describe('a feed laid over a run', () => {
  it('fills steps, statuses and counts as they come', () => {
    const after = foldFeed(detail, [
      entry(11, 'run.started'),
      step(12, 'a', 0, 0.5),
      step(13, 'a', 1, 0.25),
      entry(14, 'task.completed', { trajectoryId: 'a', status: 'completed', reward: 0.75 }),
    ]);
    expect(after.status).toBe('running');
    expect(after.eventSeq).toBe(14);
    expect(after.counts).toMatchObject({ queued: 3, running: 0, completed: 1 });
    expect(after.groups[0]?.trajectories[0]).toMatchObject({
      status: 'completed',
      stepRewards: [0.5, 0.25],
      reward: 0.75,
      startedAtMs: 1200,
      finishedAtMs: 1400,
    });
    expect(after.groups[1]).toBe(detail.groups[1]);
    expect(detail.groups[0]?.trajectories[0]?.stepRewards).toEqual([]);
  });

  it('passes over what the answer already holds and what comes twice', () => {
    const ended = entry(9, 'task.completed', { trajectoryId: 'a', status: 'failed' });
    expect(foldFeed(detail, [ended, entry(10, 'run.completed', { status: 'failed' })])).toBe(detail);
    const done = entry(11, 'task.completed', { trajectoryId: 'a', status: 'failed', reward: null });
    expect(foldFeed(detail, [done, done]).counts).toMatchObject({ queued: 3, failed: 1 });
  });

  it('keeps the steps of a trajectory that goes on when a whole answer lacks them', () => {
    const steps = [step(11, 'a', 0, 0.5), step(12, 'a', 1, 0.25), step(13, 'c', 0, 1)];
    const answer = foldFeed(detail, [
      entry(14, 'task.completed', { trajectoryId: 'c', status: 'completed', reward: 1 }),
    ]);
    const view = foldFeed(answer, stillWorth(answer, steps));
    expect(view.groups[0]?.trajectories[0]?.stepRewards).toEqual([0.5, 0.25]);
    expect(view.groups[1]?.trajectories[0]?.stepRewards).toEqual([]);
    expect(view.eventSeq).toBe(14);
    expect(stillWorth(answer, steps)).toHaveLength(2);
  });

  it('leaves no hole when a step was missed, and ignores trajectories it does not know', () => {
    const after = foldFeed(detail, [step(11, 'a', 3, 1), step(12, 'unknown', 0, 1)]);
    expect(after.groups[0]?.trajectories[0]?.stepRewards).toEqual([]);
    expect(after.groups[0]?.trajectories[0]?.status).toBe('running');
  });

  it('ends with the run', () => {
    const after = foldFeed(detail, [entry(11, 'run.completed', { status: 'cancelled' })]);
    expect(after).toMatchObject({ status: 'cancelled', finishedAtMs: 1100 });
  });

  it('comes to the same in one piece or in two, in any order within a piece, and keeps the number of trajectories', () => {
    const anyEntry = fc.record({
      id: fc.constantFrom('a', 'b', 'c', 'd'),
      type: fc.constantFrom('step.completed', 'task.completed', 'generation.started'),
      stepNumber: fc.nat(2),
      status: fc.constantFrom('completed' as const, 'failed' as const),
    });
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 30 }), fc.nat(30), (wishes, cut) => {
        const entries = wishes.map(({ id, type, stepNumber, status }, index) =>
          entry(11 + index, type, { trajectoryId: id, stepNumber, reward: index, status }),
        );
        const whole = foldFeed(detail, [...entries].reverse());
        expect(foldFeed(foldFeed(detail, entries.slice(0, cut)), entries.slice(cut))).toEqual(whole);
        expect(Object.values(whole.counts).reduce((sum, n) => sum + n, 0)).toBe(4);
        for (const { trajectories } of whole.groups)
          for (const { stepRewards } of trajectories) expect(Object.keys(stepRewards)).toHaveLength(stepRewards.length);
      }),
    );
  });
});

describe('whether the whole answer is wanted', () => {
  it('is when a trajectory, a group or the run ended, not for a step', () => {
    expect(asksForWholeAnswer([step(1, 'a', 0, 1)])).toBe(false);
    expect(asksForWholeAnswer([step(1, 'a', 0, 1), entry(2, 'group.completed')])).toBe(true);
    expect(asksForWholeAnswer([entry(2, 'run.completed')])).toBe(true);
  });
});
