import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { appendEvents } from '../../../db/queries/events';
import { openTestApp, type TestApp } from '../../http/testing/open-test-app';
import type { ServiceContext } from '../context';
import { getRun } from '../runs/get-run';
import { listFailures } from '../runs/list-failures';
import { listRuns } from '../runs/list-runs';
import { insertTestRun, type TestRun } from '../testing/insert-test-run';
import { getTrajectory } from './get-trajectory';

let app: TestApp;
let ctx: ServiceContext;
let run: TestRun;
beforeAll(async () => {
  app = await openTestApp();
  run = await insertTestRun((await app.person('operator')).ctx);
  ctx = (await app.person('viewer')).ctx;
});
afterAll(() => app.close());

describe('a trajectory as a page sees it', () => {
  it('is there before anything has happened, with its task, its siblings and the weights of its reward', async () => {
    const [first, second] = run.groups[0]?.members ?? [];
    const detail = await getTrajectory({ ctx, input: { trajectoryId: first?.trajectoryId ?? '' } });
    expect(detail).toMatchObject({
      status: 'queued',
      prompt: 'Find a.',
      steps: [],
      final: false,
      totalTokens: 0,
      answer: null,
    });
    expect(detail.rewardWeights).toEqual({ tool_accuracy: 0.2, search_progress: 0.4, answer_f1: 0.4 });
    expect(detail.siblings.map((row) => row.trajectoryId)).toEqual([first?.trajectoryId, second?.trajectoryId]);
    expect(JSON.stringify(detail)).not.toContain('sessionId');
  });

  it('shows odd events as far as they can be read, and goes on from the event it already has', async () => {
    const member = run.groups[0]?.members[0];
    const common = { atMs: 1, sessionId: member?.sessionId ?? '', runId: run.runId };
    await appendEvents(app.services.database.db, [
      { ...common, seq: 0, type: 'generation.completed', data: { stepNumber: 0, text: 7 } },
      { ...common, seq: 1, type: 'tool.completed', data: { stepNumber: 0, result: [null] } },
      { ...common, seq: 2, type: 'a word of tomorrow', data: { stepNumber: 0 } },
      {
        ...common,
        seq: 3,
        type: 'step.completed',
        data: { step_number: 1, reasoning: 'ok\u0000\ud800', reward: 'NaN', actions: 3 },
      },
      {
        ...common,
        seq: 4,
        type: 'task.completed',
        data: { status: 'completed', answer: { n: 1 }, reward: 0.5, reason: 'answer' },
      },
    ]);
    const detail = await getTrajectory({ ctx, input: { trajectoryId: member?.trajectoryId ?? '' } });
    expect(detail.steps).toHaveLength(2);
    expect(detail).toMatchObject({ answer: { n: 1 }, endReason: 'answer', eventSeq: 4 });
    expect((await getRun({ ctx, input: { runId: run.runId } })).eventSeq).toBe(4);
  });

  it('is not found under another id', async () => {
    const trajectoryId = app.services.ambient.newId('trj');
    await expect(getTrajectory({ ctx, input: { trajectoryId } })).rejects.toThrow(
      `There is no trajectory ${trajectoryId}.`,
    );
    await expect(listFailures({ ctx, input: { runId: app.services.ambient.newId('run') } })).rejects.toThrow(
      'There is no run',
    );
  });

  it('belongs to a run that lists it', async () => {
    const page = await listRuns({ ctx, input: { limit: 1 } });
    expect(page).toMatchObject({ total: 1, nextCursor: null, items: [{ runId: run.runId, status: 'queued' }] });
    expect(page.items[0]?.counts.queued).toBe(4);
    expect((await listRuns({ ctx, input: { status: 'failed' } })).items).toEqual([]);
  });
});
