import { Command } from 'commander';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Cancelled, Invalid, NotFound, StudioError, Unavailable } from '../core/errors';
import type { BackendCheck, CheckItem } from '../core/inference';
import type { ScoreJobView } from '../core/views';
import { openTestApp, type TestApp } from '../http/testing/open-test-app';
import type { ServerToCheck } from '../services/context';
import { CountedBackend } from '../services/testing/counted-backend';
import { insertTestRun } from '../services/testing/insert-test-run';
import { addBackendCommands } from './backend-commands';
import { updateWeights } from './backends';
import { harmless } from './check-list';
import { connect, type StudioClient } from './client';
import { score } from './score';

const URL_A = 'http://gpu-1:8000';
const item = (status: CheckItem['status'], says: string): CheckItem => ({
  id: 'token_round_trip',
  status,
  sent: 'POST /v1/completions {"prompt":[1]}',
  received: '{"ids":null}',
  says,
});

let app: TestApp;
let client: StudioClient;
let asked: ServerToCheck[];
let found: Partial<BackendCheck>;
let backend: CountedBackend;
beforeAll(async () => {
  app = await openTestApp();
  const { secret } = await app.person('admin');
  client = connect({ url: app.url, publicUrl: app.url, token: secret, lasting: true });
  app.services.process.backendLive = async () => backend;
  app.services.process.checkServer = async (wanted) => {
    asked.push(wanted);
    return {
      url: wanted.url,
      kind: 'vllm',
      serverVersion: '0.15.0',
      ok: true,
      items: [item('pass', 'Ids come back as they went.')],
      capabilities: null,
      fingerprint: null,
      checkedAtMs: 1,
      ...found,
    };
  };
});
afterAll(() => app.close());
beforeEach(() => {
  asked = [];
  found = {};
  backend = new CountedBackend('gpu');
});

/** Runs one command as the command line would; what it printed, told, and the exit code it asked for. */
async function run(words: string[], keys: { key?: string } = {}, asked: StudioClient = client) {
  const printed: string[] = [];
  const told: string[] = [];
  let exitCode = 0;
  const program = new Command('studio').exitOverride().configureOutput({ writeErr: (text) => void told.push(text) });
  addBackendCommands(program, {
    withClient: (use) => use(asked),
    withRunningStudio: (use) => use(asked),
    print: (line) => void printed.push(line),
    tell: (line) => void told.push(line),
    readKeys: async ({ controlKeyEnv }) => ({ ...keys, controlKey: controlKeyEnv && `value-of-${controlKeyEnv}` }),
    endWith: (code) => {
      exitCode = code;
    },
    signal: new AbortController().signal,
  });
  for (const command of program.commands) command.exitOverride();
  await program.parseAsync(words, { from: 'user' });
  return { printed, told, exitCode };
}

describe('studio backends check', () => {
  it('prints a list for people and ends with 0 when the server can be used', async () => {
    const { printed, exitCode } = await run(['backends', 'check', URL_A], { key: 'sk-1' });
    expect(asked).toEqual([
      {
        backend: null,
        url: URL_A,
        kind: 'auto',
        model: null,
        tokenizer: null,
        contextLength: null,
        key: 'sk-1',
        controlKey: null,
      },
    ]);
    expect(printed).toEqual([
      `${URL_A}: vllm 0.15.0`,
      '✓ token round trip: Ids come back as they went.',
      'It can be used.',
    ]);
    expect(exitCode).toBe(0);
  });

  it('prints what was sent and came back where an item failed, ends with 1, and says the same as JSON', async () => {
    found = { ok: false, items: [item('fail', 'It drops the ids\u001b[2J\r\nof tokens.')] };
    const { printed, exitCode } = await run(['backends', 'check', URL_A, '--kind', 'vllm', '--context-length', '512']);
    expect(asked[0]).toMatchObject({ kind: 'vllm', contextLength: 512, key: null });
    expect(printed.join('\n')).toContain('✗ token round trip: It drops the ids [2J of tokens.\n    sent POST /v1');
    expect(printed.at(-1)).toBe('It cannot be used as it is.');
    expect(exitCode).toBe(1);
    const json = await run(['backends', 'check', URL_A, '--json']);
    expect(json.exitCode).toBe(1);
    expect(JSON.parse(json.printed.join(''))).toMatchObject({
      url: URL_A,
      server_version: '0.15.0',
      checked_at_ms: 1,
      ok: false,
      items: [{ id: 'token_round_trip', status: 'fail' }],
    });
  });

  it('refuses a kind that is not known and an address that is none', async () => {
    await expect(run(['backends', 'check', URL_A, '--kind', 'ollama'])).rejects.toThrow(/Allowed choices/);
    await expect(run(['backends', 'check', 'ftp://x'])).rejects.toBeInstanceOf(Invalid);
    expect(asked).toEqual([]);
  });
});

describe('studio backends add and list', () => {
  it('adds checked servers, tells what they lack, and lists them', async () => {
    found = { items: [item('warn', 'Numbers come after temperature.'), item('pass', 'Fine.')] };
    const added = await run(['backends', 'add', 'gpu', URL_A, 'http://gpu-2:8000', '--default'], { key: 'sk-1' });
    expect(added).toMatchObject({ printed: ['gpu'], told: ['! token round trip: Numbers come after temperature.'] });
    expect(asked).toHaveLength(2);
    const list = JSON.parse((await run(['backends', 'list', '--json'])).printed.join(''));
    expect(list[0]).toMatchObject({ name: 'gpu', kind: 'vllm', is_default: true, urls: [URL_A, 'http://gpu-2:8000'] });
    expect((await run(['backends', 'list'])).printed[0]).toMatch(/^gpu \(default\): vllm at http:\/\/gpu-1:8000, /);
    const told = { ok: true, message: '1 of 2 servers serve m.' };
    const partly = { ...client, listBackends: async () => [{ ...list[0], isDefault: true, health: told }] };
    expect((await run(['backends', 'list'], {}, partly)).printed[0]).toMatch(/\. 1 of 2 servers serve m\.$/);
    const again = await run(['backends', 'add', 'gpu', URL_A, 'http://gpu-2:8000', '--json']);
    expect(JSON.parse(again.printed.join(''))).toMatchObject({ name: 'gpu', changed: false });
  });

  it('takes a control key for trtllm-serve, and for no other', async () => {
    const words = [URL_A, '--control-key-env', 'TRT'];
    const more = ['--kind', 'tensorrt-llm'];
    found = { kind: 'tensorrt-llm' };
    expect((await run(['backends', 'add', 'trt', ...words, ...more])).printed).toEqual(['trt']);
    await run(['backends', 'check', ...words]);
    expect(asked.map(({ controlKey }) => controlKey)).toEqual(['value-of-TRT', 'value-of-TRT']);
    found = {};
    await expect(run(['backends', 'check', ...words])).rejects.toThrow(`${URL_A} is of the kind vllm.`);
    await expect(run(['backends', 'add', 'no', ...words])).rejects.toThrow('no is of the kind vllm.');
  });

  it('does not add a server whose check fails, unless it is not asked', async () => {
    found = { ok: false, items: [item('fail', 'It ignores constraints.')] };
    await expect(run(['backends', 'add', 'bad', URL_A])).rejects.toThrow(/It ignores constraints\./);
    asked = [];
    await run(['backends', 'add', 'bad', URL_A, '--kind', 'sglang', '--unchecked']);
    expect(asked).toEqual([]);
  });
});

describe('studio backends remove', () => {
  it('removes one, and says when there is none of the name', async () => {
    await run(['backends', 'add', 'old', URL_A]);
    expect((await run(['backends', 'remove', 'old'])).printed).toEqual(['old']);
    await expect(run(['backends', 'remove', 'old'])).rejects.toBeInstanceOf(NotFound);
  });
});

describe('studio weights, pause, resume', () => {
  it('waits for the end of an update, and fails with what the server said', async () => {
    const done = await run(['weights', 'gpu', '--checkpoint', '/w/2', '--version', 'w2', '--interrupt', '--json']);
    expect(JSON.parse(done.printed.join(''))).toMatchObject({
      version: 'w2',
      status: 'succeeded',
      in_flight: 'interrupt',
    });
    backend.duringUpdate = async () => {
      throw new Unavailable('no such folder');
    };
    await expect(run(['weights', 'gpu', '--external', '--version', 'w3'])).rejects.toThrow('no such folder');
    await expect(run(['weights', 'gpu', '--version', 'w3'])).rejects.toThrow(/Say where the new weights come from/);
    await expect(run(['weights', 'gpu', '--lora', 'a', '--external', '--version', 'x'])).rejects.toThrow(
      /cannot be used/,
    );
  });

  it('says which servers do not have the new weights yet', async () => {
    const replicas = [
      { url: URL_A, state: 'healthy', reason: null, weightVersion: 'w4' },
      { url: 'http://gpu-2:8000', state: 'down', reason: 'It refused the connection.', weightVersion: null },
    ];
    const partly = { ...client, getBackend: async () => ({ replicas }) } as unknown as StudioClient;
    const done = await run(['weights', 'gpu', '--external', '--version', 'w4'], {}, partly);
    expect(done).toMatchObject({
      printed: ['gpu serves w4'],
      told: ['http://gpu-2:8000 does not have w4 yet: It refused the connection.'],
    });
  });

  it('goes on asking while an update runs, and stops watching when asked to', async () => {
    const view = { id: 'wgt_1', status: 'running', error: null, version: 'w2' };
    const answers = ['running', 'succeeded'];
    const slow = {
      ...client,
      updateWeights: async () => view,
      weightUpdates: async () => [{ ...view, status: answers.shift() }],
    } as unknown as StudioClient;
    const update = { name: 'gpu', source: { kind: 'external' as const }, version: 'w2' };
    expect(await updateWeights(slow, update, new AbortController().signal)).toMatchObject({ status: 'succeeded' });
    await expect(updateWeights(slow, update, AbortSignal.abort())).rejects.toBeInstanceOf(Cancelled);
  });

  it('pauses and resumes', async () => {
    await run(['pause', 'gpu']);
    expect(backend.paused).toBe(true);
    await run(['resume', 'gpu']);
    expect(backend.paused).toBe(false);
  });
});

describe('studio score', () => {
  it('says in words what cannot be scored', async () => {
    const { runId } = await insertTestRun((await app.person('operator')).ctx);
    await expect(run(['score', runId, '--as', 'ref', '--backend', 'gpu'])).rejects.toThrow(/no token sequences/);
    await expect(run(['score', runId, '--as', 'old', '--backend', 'gpu'])).rejects.toThrow(/Allowed choices/);
    await expect(run(['score', runId, '--as', 'ref', '--backend', 'gpu', '--alternatives', '6'])).rejects.toThrow(
      /whole number from 0 to 5/,
    );
  });

  it('waits for the end and fails when the scoring does', async () => {
    const job = (more: Partial<ScoreJobView>) => ({
      runId: 'r',
      as: 'ref' as const,
      backendName: 'gpu',
      status: 'running' as const,
      total: 2,
      done: 0,
      scored: 0,
      alreadyScored: 0,
      approximate: 0,
      error: null,
      startedAtMs: 1,
      finishedAtMs: null,
      ...more,
    });
    const ending = (more: Partial<ScoreJobView> | null) =>
      score(
        { ...client, scoreRun: async () => job({}), scoreStatus: async () => more && job(more) },
        { runId: 'r', as: 'ref', backend: 'gpu' },
        new AbortController().signal,
      );
    expect(await ending({ status: 'succeeded', done: 2, scored: 2 })).toMatchObject({ scored: 2 });
    await expect(ending({ status: 'failed', error: 'gpu-1 went away.' })).rejects.toThrow('gpu-1 went away.');
    await expect(ending({ status: 'cancelled' })).rejects.toBeInstanceOf(Cancelled);
    await expect(ending(null)).rejects.toBeInstanceOf(StudioError);
  });
});

it('makes text of servers harmless for a terminal', () => {
  expect(harmless('a\u001b[31m\u0007b\r\nc\u202ed\u2028e')).toBe('a [31m b c d e');
});
