import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Conflict, Unavailable } from '../../core/errors';
import { silentLogger } from '../../observability/logger';
import { Rechecks } from './rechecks';

describe('checks after a restart of a server', () => {
  it('go on one at a time for each backend, and again after one that failed', async () => {
    const asked: string[] = [];
    let end: (() => void) | null = null;
    const rechecks = new Rechecks((name) => {
      asked.push(name);
      return new Promise((_resolve, reject) => (end = () => reject(new Unavailable('gone again'))));
    }, silentLogger);
    rechecks.request('a');
    rechecks.request('a');
    rechecks.request('b');
    expect(asked).toEqual(['a', 'b']);
    (end as (() => void) | null)?.();
    await new Promise((next) => setTimeout(next, 1));
    rechecks.request('b');
    expect(asked).toEqual(['a', 'b', 'b']);
  });

  it('are given up when the studio ends, without a word', async () => {
    const lines: unknown[] = [];
    const logger = { ...silentLogger, warn: (...line: unknown[]) => void lines.push(line) };
    const asked: string[] = [];
    const rechecks = new Rechecks(
      async (name, signal) => {
        asked.push(name);
        await sleep(60_000, undefined, { signal });
      },
      logger as typeof silentLogger,
    );
    rechecks.request('a');
    rechecks.stop();
    await new Promise((next) => setTimeout(next, 5));
    rechecks.request('a');
    expect(asked).toEqual(['a']);
    expect(lines).toEqual([]);
  });

  it('are tried again by themselves while the backend is paused', async () => {
    let paused = true;
    const asked: boolean[] = [];
    const rechecks = new Rechecks(
      async () => {
        asked.push(paused);
        if (paused) throw new Conflict('It is paused.');
      },
      silentLogger,
      5,
    );
    rechecks.request('a');
    while (asked.length < 2) await new Promise((next) => setTimeout(next, 1));
    paused = false;
    while (asked.at(-1)) await new Promise((next) => setTimeout(next, 1));
    const { length } = asked;
    await new Promise((next) => setTimeout(next, 30));
    expect(asked).toHaveLength(length);
  });
});
