import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { followLog } from './follow-log';
import { createRunLogBus } from './run-log-bus';

const RUN = 'run_x';

function growingLog() {
  const entries: { seq: number }[] = [];
  const runLog = createRunLogBus();
  return {
    runLog,
    add(count: number, notify = true) {
      for (let i = 0; i < count; i++) entries.push({ seq: entries.length });
      if (notify) runLog.grew(RUN);
    },
    read: async (afterSeq: number, limit: number) => entries.filter((entry) => entry.seq > afterSeq).slice(0, limit),
  };
}

describe('following a log', () => {
  it('sends what was there and what comes, once each, in order, in batches of at most 100', async () => {
    const bursts = fc.array(fc.integer({ min: 1, max: 260 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(bursts, fc.nat(50), async (counts, start) => {
        const log = growingLog();
        const total = counts.reduce((sum, count) => sum + count, 0);
        if (start >= total) return;
        log.add(counts[0] ?? 0);
        const growing = (async () => {
          for (const count of counts.slice(1)) {
            await new Promise((resolve) => setImmediate(resolve));
            log.add(count);
          }
        })();
        const seen: number[] = [];
        const stop = new AbortController();
        const { signal } = stop;
        const followed = followLog({ ...log, runId: RUN, afterSeq: start - 1, signal, gatherMs: 0, pollMs: 60_000 });
        for await (const batch of followed) {
          expect(batch.length).toBeLessThanOrEqual(100);
          seen.push(...batch.map((entry) => entry.seq));
          if (seen.length >= total - start) stop.abort();
        }
        await growing;
        expect(seen).toEqual(Array.from({ length: total - start }, (_, i) => start + i));
      }),
      { numRuns: 50 },
    );
  });

  it('notices growth that was never announced', async () => {
    const log = growingLog();
    const stop = new AbortController();
    const followed = followLog({ ...log, runId: RUN, afterSeq: -1, signal: stop.signal, pollMs: 5, gatherMs: 0 });
    const first = followed.next();
    log.add(3, false);
    expect((await first).value).toHaveLength(3);
    stop.abort();
    expect((await followed.next()).done).toBe(true);
  });

  it('leaves nothing behind when the reader goes', async () => {
    const log = growingLog();
    log.add(1);
    const stop = new AbortController();
    const followed = followLog({ ...log, runId: RUN, afterSeq: -1, signal: stop.signal });
    await followed.next();
    expect(log.runLog.followers()).toBe(1);
    const waiting = followed.next();
    stop.abort();
    expect((await waiting).done).toBe(true);
    expect(log.runLog.followers()).toBe(0);
  });

  it('reads nothing while the connection is full', async () => {
    const log = growingLog();
    log.add(300);
    let reads = 0;
    let drain: () => void = () => undefined;
    const full = new Promise<void>((resolve) => (drain = resolve));
    const followed = followLog({
      ...log,
      runId: RUN,
      afterSeq: -1,
      read: (after, limit) => {
        reads++;
        return log.read(after, limit);
      },
      connectionDrained: () => full,
    });
    const first = followed.next();
    await new Promise((resolve) => setImmediate(resolve));
    expect(reads).toBe(0);
    drain();
    expect((await first).value).toHaveLength(100);
    await followed.return();
  });
});
