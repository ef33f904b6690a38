import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemAmbient } from './core/ambient';
import { Conflict } from './core/errors';
import { parseEnvironment } from './env';
import { listen } from './http/listen';
import { silentLogger } from './observability/logger';
import { readServerFile, removeServerFile, serverFilePath, writeServerFile } from './server-file';
import { type Studio, startStudio } from './studio';

let dataDir: string;
const started: Studio[] = [];
beforeAll(async () => {
  dataDir = await mkdtemp(`${tmpdir()}/ts 数据 `);
});
afterAll(async () => {
  for (const studio of started) await studio.stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function start(environment: Record<string, string> = {}): Promise<Studio> {
  const studio = await startStudio({
    environment: parseEnvironment({ STUDIO_DATA_DIR: dataDir, PORT: '0', PATH: process.env.PATH, ...environment }),
    ambient: systemAmbient(),
    logger: silentLogger,
    packageRoot: fileURLToPath(new URL('..', import.meta.url)),
    development: false,
    withPages: false,
    onFatal: (error) => {
      throw error;
    },
  });
  started.push(studio);
  return studio;
}

async function stop(studio: Studio): Promise<void> {
  started.splice(started.indexOf(studio), 1);
  await studio.stop();
}

describe('the studio as one process', () => {
  it('opens on a free port, lets the printed address in once, and programs of this user by their file', async () => {
    const studio = await start();
    expect(studio.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const token = new URL(studio.signInUrl).searchParams.get('token');
    const signIn = () =>
      fetch(`${studio.url}/api/sign-in`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: studio.url },
        body: JSON.stringify({ token }),
      });
    expect(await (await signIn()).json()).toMatchObject({ viewer: { name: 'admin', role: 'admin' } });
    expect((await signIn()).status).toBe(401);

    expect((await stat(serverFilePath(dataDir))).mode & 0o777).toBe(0o600);
    const file = await readServerFile(dataDir);
    expect(file).toMatchObject({ url: studio.url, pid: process.pid });
    const headers = { authorization: `Bearer ${file?.token}` };
    const skills = await fetch(`${studio.url}/api/trpc/skills.list`, { headers });
    expect(await skills.text()).toContain('tutorial');

    await expect(start()).rejects.toThrow(Conflict);
    expect((await fetch(`${studio.url}/healthz`)).status).toBe(200);

    await stop(studio);
    expect(await readServerFile(dataDir)).toBeNull();
    await expect(fetch(`${studio.url}/healthz`)).rejects.toThrow();
  });

  it('takes the token back that a killed predecessor left in its file', async () => {
    const first = await start();
    const old = JSON.parse(await readFile(serverFilePath(dataDir), 'utf8')) as {
      url: string;
      publicUrl: string;
      pid: number;
      token: string;
    };
    await stop(first);
    await writeServerFile(dataDir, old);
    const second = await start();
    const ask = (token: string | undefined) =>
      fetch(`${second.url}/api/trpc/viewer.me`, { headers: { authorization: `Bearer ${token}` } });
    expect((await ask(old.token)).status).toBe(401);
    expect((await ask((await readServerFile(dataDir))?.token)).status).toBe(200);
    await stop(second);
  });

  it('says which port is taken, and leaves nothing open', async () => {
    const other = createServer();
    const port = await listen(other, '127.0.0.1', 0);
    await expect(start({ PORT: String(port) })).rejects.toThrow(
      `Port ${port} of 127.0.0.1 is in use by another program.`,
    );
    await writeServerFile(dataDir, {
      url: 'http://a',
      publicUrl: 'http://studio.example',
      pid: process.ppid,
      token: 't',
    });
    await expect(start({ PORT: String(port) })).rejects.toThrow(
      `A studio runs on the data folder ${dataDir} already (process ${process.ppid}). Open http://studio.example, or`,
    );
    await removeServerFile(dataDir, process.ppid);
    await new Promise((resolve) => other.close(resolve));
    await stop(await start({ PORT: String(port) }));
  });
});
