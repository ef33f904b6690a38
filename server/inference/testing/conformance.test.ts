import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyCheckpoint } from './checkpoint';
import { writeTinyModel } from './tiny-model';
import { startTensorrtTwin } from './twin/tensorrt';
import type { Twin } from './twin/twin';

let folder: string;
let twin: Twin;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'conformance-'));
  await writeTinyModel(join(folder, 'tiny.gguf'));
  await writeTinyCheckpoint(join(folder, 'tiny'));
  twin = await startTensorrtTwin({ modelPath: join(folder, 'tiny.gguf') });
});
afterAll(async () => {
  await twin?.close();
  await rm(folder, { recursive: true, force: true });
});

describe('the conformance suite on a server that somebody else started', () => {
  it('runs what the server offers and skips the rest by name', { timeout: 240_000 }, async () => {
    const told = join(folder, 'told.json');
    const vitest = join('node_modules', 'vitest', 'vitest.mjs');
    const suite = 'server/inference/remote/given-server.test.ts';
    const { VITEST: _here, ...inherited } = process.env;
    const child = spawn(process.execPath, [vitest, 'run', '--reporter=json', `--outputFile=${told}`, suite], {
      stdio: 'ignore',
      env: {
        ...inherited,
        STUDIO_TEST_DATABASE_URL: 'none',
        STUDIO_TEST_SERVER_URL: twin.url,
        STUDIO_TEST_SERVER_KIND: 'tensorrt-llm',
        STUDIO_TEST_SERVER_TOKENIZER: join(folder, 'tiny'),
      },
    });
    const code = await new Promise((ended) => child.once('exit', ended));
    expect(code).toBe(0);
    const { testResults } = JSON.parse(await readFile(told, 'utf8')) as {
      testResults: { assertionResults: { title: string; status: string }[] }[];
    };
    const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
    const withStatus = (wanted: string) => tests.filter(({ status }) => status === wanted).map(({ title }) => title);
    expect(withStatus('skipped').sort()).toEqual([
      'agrees with another server of the same weights',
      'can do all that is said of it',
      'gives the likeliest tokens and the entropy of each position beside the scores',
      'moves the version with new weights, and keeps it with weights that cannot be loaded',
      'scores tokens up to the last that its context holds',
      'scores what it sampled with the numbers it gave while sampling',
    ]);
    expect(withStatus('passed')).toHaveLength(tests.length - 6);
    expect(withStatus('passed')).toContain(
      'writes only what a constraint allows, and stops when that is complete: regex',
    );
  });
});
