import { spawn } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

let dataDir: string;
beforeAll(async () => {
  dataDir = await mkdtemp(`${tmpdir()}/ts-cli-`);
});
afterAll(() => rm(dataDir, { recursive: true, force: true }));

/** Runs one command until it ends by itself. */
function studio(words: string[]): Promise<{ code: number | null; out: string; error: string }> {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  const child = spawn(
    process.execPath,
    ['--import', tsx, fileURLToPath(new URL('./cli.ts', import.meta.url)), ...words],
    { env: { PATH: process.env.PATH, NODE_ENV: 'production', STUDIO_DATA_DIR: dataDir } },
  );
  let out = '';
  let error = '';
  child.stdout.on('data', (data) => (out += data));
  child.stderr.on('data', (data) => (error += data));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, error })));
}

describe('a command for a studio that runs, where none does', () => {
  for (const words of [['pause', 'lab'], ['resume', 'lab'], ['sign-in']])
    it(`${words[0]} says so and opens nothing`, async () => {
      expect(await studio(words)).toEqual({
        code: 5,
        out: '',
        error: 'No studio runs on this data folder. Start one with: npm start\n',
      });
      expect(await readdir(dataDir)).toEqual([]);
    });
});
