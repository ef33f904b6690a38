import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseEnvironment } from './env';
import { listen } from './http/listen';

let dataDir: string;
beforeAll(async () => {
  dataDir = await mkdtemp(`${tmpdir()}/ts-main-`);
});
afterAll(() => rm(dataDir, { recursive: true, force: true }));

/** Runs the process until it ends by itself. */
function run(environment: Record<string, string>): Promise<{ code: number | null; out: string; error: string }> {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  const child = spawn(process.execPath, ['--import', tsx, fileURLToPath(new URL('./main.ts', import.meta.url))], {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', PORT: '0', STUDIO_DATA_DIR: dataDir, ...environment },
  });
  let out = '';
  let error = '';
  child.stdout.on('data', (data) => (out += data));
  child.stderr.on('data', (data) => (error += data));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, error })));
}

describe('a start that cannot be', () => {
  it('names the variable that cannot be read', async () => {
    const { code, out, error } = await run({ PORT: 'abc' });
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(error).toMatch(/^The environment variable PORT is "abc" and cannot be used/);
    expect(error.trim().split('\n')).toHaveLength(1);
  });

  it('tells what is wrong with a variable in words, and shows no part of a password', () => {
    const told = (source: Record<string, string>): string => {
      try {
        parseEnvironment(source);
      } catch (error) {
        return error instanceof Error ? error.message : '';
      }
      return 'taken';
    };
    for (const text of ['abc', '-1', '70000', '3.5', ' ', '1e3'])
      expect(told({ PORT: text })).toContain(
        `PORT is ${JSON.stringify(text)} and cannot be used: it must be a whole number`,
      );
    expect(told({ STUDIO_LOG_LEVEL: 'loud' })).toContain('it must be one of silent, fatal, error');
    for (const url of [
      'hunter2',
      'mysql://u:hunter2@h/db',
      'postgres://u:x%hunter2@h/db',
      'postgres://u:x@hunter2#y@h/db',
      'postgres://u:1/hunter2@h/db',
      'postgres://u:1?hunter2@h/db',
    ]) {
      expect(told({ DATABASE_URL: url })).toMatch(/^The environment variable DATABASE_URL cannot be used: /);
      expect(told({ DATABASE_URL: url })).not.toContain('hunter2');
    }
    expect(told({ DATABASE_URL: 'postgres://u:a%23%40%2F@h:5432/db?sslmode=require', PORT: '0' })).toBe('taken');
  });

  it('names the port that is taken', async () => {
    const other = createServer();
    const port = await listen(other, '127.0.0.1', 0);
    const { code, out, error } = await run({ PORT: String(port), STUDIO_LOG_LEVEL: 'silent' });
    expect(code).toBe(5);
    expect(out).toBe('');
    expect(error).toContain(`Port ${port} of 127.0.0.1 is in use by another program.`);
    await new Promise((resolve) => other.close(resolve));
  });

  it('says where the database is that does not answer, and not with which password', async () => {
    const { code, error } = await run({ DATABASE_URL: 'postgres://someone:hunter2@127.0.0.1:1/studio' });
    expect(code).toBe(7);
    expect(error).toContain('PostgreSQL at 127.0.0.1:1/studio cannot be reached');
    expect(error).not.toContain('hunter2');
  });
});
