import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROLES, type Role } from '../core/vocabulary';
import { openTestApp, type TestApp } from '../http/testing/open-test-app';
import { appRouter } from './app-router';
import type { ProcedureMeta } from './trpc';

interface Walked {
  path: string;
  type: 'query' | 'mutation' | 'subscription';
  role: ProcedureMeta['role'] | undefined;
}

const procedures: Walked[] = Object.entries(appRouter._def.procedures).map(([path, procedure]) => {
  const { type, meta } = (procedure as unknown as { _def: { type: Walked['type']; meta?: ProcedureMeta } })._def;
  return { path, type, role: meta?.role };
});

let app: TestApp;
const bearers = new Map<Role, { authorization: string }>();
beforeAll(async () => {
  app = await openTestApp();
  for (const role of ROLES) bearers.set(role, (await app.person(role)).bearer);
});
afterAll(() => app.close());

/** The status of a call over HTTP; its input is deliberately unfit, so that nothing happens even where it is let in. */
async function statusOf({ path, type }: Walked, headers: Record<string, string>): Promise<number> {
  const url = `${app.url}/api/trpc/${path}`;
  const body = JSON.stringify({ json: { odd: true } });
  const res =
    type === 'mutation'
      ? await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json', origin: app.url, ...headers },
          body,
        })
      : await fetch(`${url}?input=${encodeURIComponent(body)}`, { headers });
  if (type !== 'subscription') {
    await res.body?.cancel();
    return res.status;
  }
  // A stream of events begins with 200 and says what is wrong as its first event.
  const first = new TextDecoder().decode((await res.body?.getReader().read())?.value);
  return Number(/"httpStatus":(\d+)/.exec(first)?.[1] ?? res.status);
}

describe('the ladder of procedures', () => {
  it('has every procedure on a rung', () => {
    expect(procedures.length).toBeGreaterThan(10);
    for (const { path, role } of procedures)
      expect({ path, role: role ?? 'forgotten' }).not.toEqual({ path, role: 'forgotten' });
    // Whatever is open to everyone is named here, so that nothing becomes so by accident.
    expect(procedures.filter(({ role }) => role === 'public').map(({ path }) => path)).toEqual([]);
  });

  it('lets nothing change anything for a viewer', () => {
    for (const { path, type, role } of procedures)
      if (type === 'mutation') expect({ path, role }).not.toEqual({ path, role: 'viewer' });
  });

  it.each(procedures)('$path refuses who is not signed in, and each role below $role', async (procedure) => {
    expect(await statusOf(procedure, {})).toBe(401);
    expect(await statusOf(procedure, { authorization: `Bearer ${'x'.repeat(43)}` })).toBe(401);
    for (const [role, bearer] of bearers) {
      const covered = ROLES.indexOf(role) >= ROLES.indexOf(procedure.role as Role);
      const status = await statusOf(procedure, bearer);
      if (covered) expect(status).not.toBe(403);
      else expect(status).toBe(403);
    }
  });
});

describe('what a caller is told', () => {
  const ask = async (path: string, input: unknown, bearer = bearers.get('admin')) => {
    const res = await fetch(
      `${app.url}/api/trpc/${path}?input=${encodeURIComponent(JSON.stringify({ json: input }))}`,
      {
        headers: bearer,
      },
    );
    const body = (await res.json()) as { error?: { json: { message: string; data: Record<string, unknown> } } };
    return { status: res.status, error: body.error?.json };
  };

  it('is one sentence in plain words that names the field, without a stack', async () => {
    const { status, error } = await ask('runs.list', { limit: 'many' });
    expect(status).toBe(400);
    expect(error?.message).toBe('The field limit cannot be used: must be a number.');
    expect(error?.data.stack).toBeUndefined();
  });

  it('says what does not exist', async () => {
    const runId = app.services.ambient.newId('run');
    const { status, error } = await ask('runs.get', { runId });
    expect(status).toBe(404);
    expect(error?.message).toBe(`There is no run ${runId}.`);
    const never = await ask('runs.get', { runId: '../../etc/passwd' });
    expect(never).toMatchObject({ status: 404, error: { message: 'There is no run called ../../etc/passwd.' } });
  });

  it('says that there is no such operation, and reads no broken JSON', async () => {
    expect(await ask('runs.dropEverything', {})).toMatchObject({
      status: 404,
      error: { message: 'There is no such operation.' },
    });
    const res = await fetch(`${app.url}/api/trpc/skills.save`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...bearers.get('operator') },
      body: '{"json":',
    });
    expect(res.status).toBe(400);
    expect(await res.text()).not.toMatch(/at .*\.ts/);
  });

  it('does not let a query string change anything', async () => {
    const res = await fetch(`${app.url}/api/trpc/skills.save?input=${encodeURIComponent('{"json":{"yaml":"x"}}')}`, {
      headers: bearers.get('operator'),
    });
    expect(res.status).toBe(405);
  });

  it('hides what nobody foresaw behind an id that the log has', async () => {
    const lines: string[] = [];
    const { createLogger } = await import('../observability/logger');
    const broken = await openTestApp({ logger: createLogger('info', { write: (line) => void lines.push(line) }) });
    const { bearer } = await broken.person('admin');
    broken.services.process.backendHealth = async () => {
      throw new TypeError('secret inner workings');
    };
    const { addBackend } = await import('../services/backends/add-backend');
    const { ctx } = await broken.person('admin');
    await addBackend({ ctx, input: { name: 'b', kind: 'embedded', settings: { modelPath: 'x.gguf' } } });
    const res = await fetch(`${broken.url}/api/trpc/backends.list`, { headers: bearer });
    const text = await res.text();
    expect(res.status).toBe(500);
    const id = /under ([0-9a-f]{10})/.exec(text)?.[1];
    expect(text).not.toContain('inner workings');
    expect(lines.find((line) => id && line.includes(id))).toContain('secret inner workings');
    await broken.close();
  });
});
