/** The key that signs requests for new weights: kept like the other keys, used with the servers it was given for alone. */
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { listBackendKeys } from '../../../db/queries/backend-keys';
import { getBackend as backendRow } from '../../../db/queries/catalog';
import { insertUser } from '../../../db/queries/sign-ins';
import { describeOnBothDatabases, type TestDatabase } from '../../../db/testing/database';
import { systemAmbient } from '../../core/ambient';
import { NotFound } from '../../core/errors';
import type { RemoteKind } from '../../core/inference';
import { silentLogger } from '../../observability/logger';
import { listAudit } from '../audit/list-audit';
import type { RunningProcess, ServerToCheck, ServiceContext } from '../context';
import { readBackendKeys } from '../secrets/backend-keys';
import { SecretBox } from '../secrets/secret-box';
import { checkOf } from '../testing/check-of';
import { idleProcess } from '../testing/idle-process';
import { addBackend } from './add-backend';
import { changeBackend } from './change-backend';
import { checkServer, recheckBackend } from './check-backend';
import { getBackend } from './get-backend';
import { listBackends } from './list-backends';

const KEY = 'sk-secret-abc';
const CONTROL_KEY = 'c0ntrol-hush';
const A = 'http://gpu-1:8000';
const B = 'http://gpu-2:8000';
const trt = (more: object = {}) => ({ name: 'trt', kind: 'tensorrt-llm' as const, urls: [A], ...more });

describeOnBothDatabases('a control key', (open) => {
  let database: TestDatabase;
  let now = Date.now();
  let asked: ServerToCheck[];
  let found: RemoteKind;
  let parts: Partial<RunningProcess>;
  let ctx: ServiceContext;

  beforeAll(async () => {
    database = await open();
    await insertUser(database.db, { id: 'usr_1', name: 'Ada', role: 'operator', createdAtMs: 1 });
  });
  beforeEach(() => {
    asked = [];
    found = 'tensorrt-llm';
    parts = {
      checkServer: async (wanted) => {
        asked.push(wanted);
        return checkOf(wanted, { kind: found });
      },
    };
    ctx = {
      database,
      // Entries of one moment have no order.
      ambient: { ...systemAmbient(), now: () => ++now },
      logger: silentLogger,
      actor: { userId: 'usr_1', name: 'Ada', role: 'operator', ipAddress: null },
      process: idleProcess(parts),
    };
  });
  const newest = async () => (await listAudit({ ctx, input: { limit: 1 } })).items[0];
  const keys = async () => readBackendKeys(database.db, ctx.process.secrets, (await backendRow(database.db, 'trt')).id);
  const controlKey = async () => (await keys()).controlKey();

  it('is kept beside the key, sealed, told to nobody, and sent as no key', async () => {
    const input = trt({ kind: 'auto', key: KEY, controlKey: CONTROL_KEY });
    const added = await addBackend({ ctx, input });
    expect(asked.at(-1)).toMatchObject({ url: A, key: KEY, controlKey: CONTROL_KEY });
    const row = await backendRow(database.db, 'trt');
    const sealed = await listBackendKeys(database.db, row.id);
    expect(sealed.map(({ url }) => url)).toEqual(expect.arrayContaining([null, 'control']));
    expect(sealed.map(({ ciphertext }) => Buffer.from(ciphertext).toString('latin1')).join()).not.toContain('hush');
    const entry = await newest();
    expect(entry).toMatchObject({ details: { key: 'given', controlKey: 'given' } });
    const detail = await getBackend({ ctx, input: { name: 'trt' } });
    expect(detail).toMatchObject({ hasKey: true, hasControlKey: true, keyProblem: null });
    expect(JSON.stringify([added, row, entry, detail, await listBackends({ ctx })])).not.toContain('hush');
    expect([A, B].map((await keys()).keyFor)).toEqual([KEY, KEY]);
    expect(await controlKey()).toBe(CONTROL_KEY);
  });

  it('stays while nothing new is given, and the key goes and comes', async () => {
    expect(await addBackend({ ctx, input: trt() })).toMatchObject({ changed: false });
    await recheckBackend({ ctx, input: { name: 'trt' } });
    expect(asked.map((wanted) => wanted.controlKey)).toEqual([CONTROL_KEY, CONTROL_KEY]);
    const { revision } = await backendRow(database.db, 'trt');
    await changeBackend({ ctx, input: { name: 'trt', key: null } });
    await changeBackend({ ctx, input: { name: 'trt', key: 'other' } });
    expect(await controlKey()).toBe(CONTROL_KEY);
    await changeBackend({ ctx, input: { name: 'trt', controlKey: 'n3w-hush' } });
    expect(await controlKey()).toBe('n3w-hush');
    expect((await keys()).keyFor(A)).toBe('other');
    // Opened again each time, with the new keys.
    expect((await backendRow(database.db, 'trt')).revision).toBe(revision + 3);
  });

  it('signs nothing for servers it was not given for', async () => {
    const both = trt({ urls: [A, B], key: KEY });
    const refusal = `The stored control key of trt signs only for the servers it was given for, and ${B} is new.`;
    await expect(addBackend({ ctx, input: both })).rejects.toThrow(refusal);
    await expect(changeBackend({ ctx, input: { name: 'trt', addUrls: [B], key: KEY } })).rejects.toThrow(refusal);
    expect(asked.filter(({ url }) => url === B).map((wanted) => wanted.controlKey)).toEqual([null, null]);
    await changeBackend({ ctx, input: { name: 'trt', addUrls: [B], key: KEY, controlKey: CONTROL_KEY } });
    expect(asked.at(-1)).toMatchObject({ url: B, controlKey: CONTROL_KEY });
    await changeBackend({ ctx, input: { name: 'trt', removeUrls: [B] } });
    expect(await controlKey()).toBe(CONTROL_KEY);
  });

  it('is told to be unreadable under another secret key, and replaced by a new one', async () => {
    const other = { ...ctx, process: idleProcess({ ...parts, secrets: new SecretBox(new Uint8Array(32).fill(1)) }) };
    await changeBackend({ ctx, input: { name: 'trt', key: null } });
    expect((await getBackend({ ctx: other, input: { name: 'trt' } })).keyProblem).toMatch(
      /^The stored control key cannot be read: it was stored under another/,
    );
    await expect(recheckBackend({ ctx: other, input: { name: 'trt' } })).rejects.toThrow(/stored control key/);
    await addBackend({ ctx: other, input: trt({ controlKey: CONTROL_KEY }) });
    expect((await getBackend({ ctx: other, input: { name: 'trt' } })).keyProblem).toBeNull();
  });

  it('is refused in a sentence for servers of other kinds, and forgotten when they take the place', async () => {
    const refused = [
      () => addBackend({ ctx, input: { name: 'no', kind: 'sglang', urls: [A], controlKey: CONTROL_KEY } }),
      () => checkServer({ ctx, input: { url: A, kind: 'openai', controlKey: CONTROL_KEY } }),
    ];
    for (const attempt of refused)
      await expect(attempt()).rejects.toThrow(/^A control key is for servers of the kind tensorrt-llm, and .* is of/);
    expect(asked).toEqual([]);
    found = 'vllm';
    const check = checkServer({ ctx, input: { url: A, controlKey: CONTROL_KEY } });
    await expect(check).rejects.toThrow(`and ${A} is of the kind vllm.`);
    const auto = { name: 'no', kind: 'auto' as const, urls: [A] };
    await expect(addBackend({ ctx, input: { ...auto, controlKey: CONTROL_KEY } })).rejects.toThrow('no is of the kind');
    const embedded = { name: 'no', kind: 'embedded' as const, settings: { modelPath: 'm' }, controlKey: CONTROL_KEY };
    const inside = addBackend({ ctx, input: embedded as never });
    await expect(inside).rejects.toThrow(/controlKey cannot be used: a control key is for servers/);
    await expect(inside).rejects.not.toThrow(/hush/);
    await expect(backendRow(database.db, 'no')).rejects.toBeInstanceOf(NotFound);
    await addBackend({ ctx, input: auto });
    await expect(changeBackend({ ctx, input: { name: 'no', controlKey: CONTROL_KEY } })).rejects.toThrow(
      /of the kind vllm/,
    );
    expect(await getBackend({ ctx, input: { name: 'no' } })).toMatchObject({ hasControlKey: false });
    await changeBackend({ ctx, input: { name: 'trt', controlKey: null } });
    expect(await newest()).toMatchObject({ details: { controlKey: 'forgotten' } });
    expect(await controlKey()).toBeNull();
    await changeBackend({ ctx, input: { name: 'trt', controlKey: CONTROL_KEY } });
    await addBackend({ ctx, input: trt({ kind: 'vllm' }) });
    expect(await controlKey()).toBeNull();
  });
});
