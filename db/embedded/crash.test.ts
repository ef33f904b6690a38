import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile, readlink, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { childEntry } from '../../server/child-entry';
import { isStudioError } from '../../server/core/errors';
import { silentLogger as logger } from '../../server/observability/logger';
import { openDatabase } from '../open';
import { readEvents } from '../queries/events';
import { testDataFolder } from '../testing/database';

const SCRIPT = fileURLToPath(new URL('../testing/crash-writer.ts', import.meta.url));
const { execArgv } = childEntry('folder-lock', import.meta.url);

interface Studio {
  process: ChildProcess;
  lines: string[];
  /** Resolves when it has written so many lines. */
  wrote(count: number): Promise<void>;
  ended: Promise<void>;
}

const studios: Studio[] = [];
const folders: string[] = [];

function startStudio(dataDir: string, mode: 'write' | 'hold'): Studio {
  const child = spawn(process.execPath, [...execArgv, SCRIPT, dataDir, mode], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const check of waiting) check();
  };
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    wake();
  });
  const studio: Studio = {
    process: child,
    lines,
    ended: new Promise((done) => child.once('close', () => done())),
    wrote: (count) =>
      new Promise((done, fail) => {
        const check = () => {
          if (lines.length >= count) done();
        };
        waiting.add(check);
        child.once('exit', () => fail(new Error(`It ended early: ${lines.at(-1)}`)));
        check();
      }),
  };
  studios.push(studio);
  return studio;
}

async function newFolder(): Promise<string> {
  const folder = await testDataFolder();
  folders.push(folder);
  return folder;
}

afterEach(async () => {
  for (const { process: child } of studios.splice(0)) child.kill('SIGKILL');
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** Processes whose working directory is this folder: the database processes it belongs to. */
async function databaseProcesses(folder: string): Promise<number[]> {
  const found: number[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (!commandLine.includes('pglite-child')) continue;
    if ((await readlink(`/proc/${pid}/cwd`).catch(() => '')) === folder) found.push(Number(pid));
  }
  return found;
}

describe('a studio killed with kill -9', () => {
  it('loses nothing that was acknowledged, leaves nothing running, and the next open works at once', async () => {
    const dataDir = await newFolder();
    const writer = startStudio(dataDir, 'write');
    await writer.wrote(400);
    writer.process.kill('SIGKILL');
    await writer.ended;
    const acknowledged = new Map<string, number>();
    for (const line of writer.lines.slice(1)) {
      const [session = '', seq = ''] = line.split(' ');
      acknowledged.set(session, Math.max(acknowledged.get(session) ?? -1, Number(seq)));
    }
    expect(acknowledged.size).toBe(16);
    const database = await openDatabase({ dataDir, logger });
    for (const [session, last] of acknowledged) {
      const events = await readEvents(database.db, { sessionId: session });
      expect(events.length).toBeGreaterThan(last);
      expect(events.map((event) => event.seq)).toEqual(events.map((_, i) => i));
    }
    await database.close();
    expect(await databaseProcesses(dataDir)).toEqual([]);
    expect(await readdir(dataDir)).toEqual(['database']);

    // The sessions exist now: a writer that starts them over is fenced out and overwrites nothing.
    const second = startStudio(dataDir, 'write');
    await second.ended;
    expect(second.lines.at(-1)).toMatch(/^failed: Another worker/);
  });

  it('leaves no database process when it had only opened', async () => {
    const dataDir = await newFolder();
    const holder = startStudio(dataDir, 'hold');
    await holder.wrote(1);
    expect(await databaseProcesses(dataDir)).toHaveLength(1);
    holder.process.kill('SIGKILL');
    await holder.ended;
    await expect.poll(() => databaseProcesses(dataDir), { timeout: 20_000 }).toEqual([]);
  });
});

describe('a data folder', () => {
  it('is refused to a second opener, in another process and in this one, naming the first', async () => {
    const dataDir = await newFolder();
    const holder = startStudio(dataDir, 'hold');
    await holder.wrote(1);
    const refusal = await openDatabase({ dataDir, logger }).catch((error: unknown) => error);
    expect(isStudioError(refusal) && refusal.code).toBe('conflict');
    expect(String(refusal)).toContain(`is in use by the studio (process ${holder.process.pid})`);
    holder.process.kill('SIGKILL');
    await holder.ended;

    const database = await openDatabase({ dataDir, logger });
    await expect(openDatabase({ dataDir, logger })).rejects.toThrow(`is in use by the studio (process ${process.pid})`);
    await database.close();
  });

  it('is given to at most one of many that open it at the same moment', async () => {
    const dataDir = await newFolder();
    const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => openDatabase({ dataDir, logger })));
    const opened = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(opened.length).toBeLessThanOrEqual(1);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(String(outcome.reason)).toContain('is in use by the studio');
    for (const database of opened) await database.close();
    const after = await openDatabase({ dataDir, logger });
    await after.close();
  });
});

describe('the database process', () => {
  it('that is killed fails what waits with one sentence and tells the studio', async () => {
    const dataDir = await newFolder();
    let told = '';
    const database = await openDatabase({ dataDir, logger, onLost: (error) => (told = error.message) });
    const [pid] = await databaseProcesses(dataDir);
    process.kill(pid ?? 0, 'SIGKILL');
    await expect
      .poll(() => told, { timeout: 20_000 })
      .toBe('The embedded database ended unexpectedly. Start the studio again.');
    await expect(database.sql`select 1`).rejects.toThrow();
    await database.close();
  });
});
