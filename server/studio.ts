/**
 * The whole studio in one process, put together: port → (pages ‖ database → people, samples → worker) → one HTTP app.
 * `startStudio` returns when people can come in; `stop` takes it apart in the order that loses nothing.
 */
import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { Database } from '../db/connection';
import { openDatabase } from '../db/open';
import type { Ambient } from './core/ambient';
import { Cancelled, Conflict, type StudioError, TimedOut, Unavailable } from './core/errors';
import type { Environment } from './env';
import { type Addresses, createAddresses } from './http/addresses';
import { createHttpApp, type HttpApp } from './http/app';
import { listen } from './http/listen';
import { openPages, type Pages } from './http/next-pages';
import { listPublicFiles } from './http/pages';
import { sendJson } from './http/respond';
import { createWebSockets, type WebSockets } from './http/web-socket';
import type { Logger } from './observability/logger';
import { metrics } from './observability/metrics';
import { createSharedRunLogBus, type SharedRunLogBus } from './realtime/database-wake-ups';
import { isAlive, readServerFile, removeServerFile, writeServerFile } from './server-file';
import { recheckWhenServing } from './services/backends/recheck-when-serving';
import { Rechecks } from './services/backends/rechecks';
import type { ServiceContext } from './services/context';
import { ensureFirstAdmin } from './services/people/ensure-first-admin';
import { makeOneTimeToken } from './services/people/make-one-time-token';
import { makeProgramToken, revokeProgramToken } from './services/people/make-program-token';
import { loadSamples } from './services/samples/load-samples';
import { ScoreJobs } from './services/scores/score-jobs';
import { openSecretBox } from './services/secrets/open-secret-box';
import { startWorkerOfThisProcess, type WorkerOfThisProcess } from './start-worker';

export interface StudioOptions {
  environment: Environment;
  ambient: Ambient;
  logger: Logger;
  /** Folder of package.json. */
  packageRoot: string;
  development: boolean;
  /** False in tests of everything but the pages. */
  withPages: boolean;
  /** The studio cannot go on: its database is gone. */
  onFatal(error: StudioError): void;
}

export interface Studio {
  /** With a token for one sign-in. */
  signInUrl: string;
  url: string;
  stop(): Promise<void>;
}

/** What is open so far, so that a start that fails half-way closes it again. */
interface Parts {
  database?: Database;
  scoreJobs?: ScoreJobs;
  runLog?: SharedRunLogBus;
  worker?: WorkerOfThisProcess;
  pages?: Promise<Pages> | null;
  rechecks?: Rechecks;
  sockets?: WebSockets;
  programToken?: { token: string; ctx: ServiceContext };
}

/** When the port is taken because a studio of the same folder has it. */
async function ownStudio(dataDir: string): Promise<Conflict | null> {
  const other = await readServerFile(dataDir);
  if (!other || other.pid === process.pid || !isAlive(other.pid)) return null;
  return new Conflict(
    `A studio runs on the data folder ${dataDir} already (process ${other.pid}). Open ${other.publicUrl}, or stop that one first.`,
  );
}

/** Throws from the error family, with nothing left open. `signal` stops a start that is still under way. */
export async function startStudio(options: StudioOptions, signal?: AbortSignal): Promise<Studio> {
  const { environment, ambient, logger, packageRoot, development } = options;
  const parts: Parts = {};
  let app: HttpApp | null = null;
  let becomeReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => (becomeReady = resolve));

  const server = createServer({ requestTimeout: 300_000, headersTimeout: 30_000 });
  server.on('request', (req, res) => void answer(req, res));
  server.on('upgrade', (req, socket, head) => void upgrade(req, socket, head));
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  });

  /** Whoever comes before everything is open waits; only the health check is told. */
  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (!app && req.url === '/healthz') return sendJson(res, 503, { ok: false, starting: true });
    if (!app) await ready;
    await app?.(req, res);
  }
  async function upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => undefined);
    if (!app) await ready;
    await parts.sockets?.handleUpgrade(req, socket, head);
  }

  const stop = async (): Promise<void> => {
    parts.rechecks?.stop();
    await takeApart('scoring', parts.scoreJobs?.stop(), logger);
    await takeApart('worker', parts.worker?.stop(), logger);
    parts.sockets?.close();
    server.close();
    server.closeIdleConnections();
    await takeApart(
      'pages',
      parts.pages?.then((pages) => pages.close()),
      logger,
    );
    server.closeAllConnections();
    await takeApart('server file', removeServerFile(environment.dataDir, process.pid), logger);
    const { programToken } = parts;
    if (programToken)
      await takeApart('token', revokeProgramToken({ ctx: programToken.ctx, input: programToken }), logger);
    await takeApart('wake-ups', parts.runLog?.close(), logger);
    await takeApart('database', parts.database?.close(), logger);
  };
  const goOn = (): void => {
    if (signal?.aborted) throw new Cancelled('Stopped before the studio was open.');
  };

  try {
    const port = await listen(server, environment.host, environment.port).catch(async (error) => {
      throw (await ownStudio(environment.dataDir)) ?? error;
    });
    const addresses = createAddresses({ host: environment.host, port, publicUrl: environment.publicUrl });
    parts.pages = options.withPages ? loadPages(options, port) : null;
    parts.pages?.catch(() => undefined);

    parts.database = await openDatabase({
      databaseUrl: environment.databaseUrl,
      dataDir: environment.dataDir,
      logger,
      onLost: options.onFatal,
    });
    goOn();
    parts.runLog = await createSharedRunLogBus(parts.database, logger);
    const { database, runLog } = parts;
    const runLogGrew = (runId: string): void => runLog.grew(runId);
    const secrets = await openSecretBox({ dataDir: environment.dataDir, key: environment.secretKey });
    const scoreJobs = new ScoreJobs(ambient.now);
    parts.scoreJobs = scoreJobs;
    const bare: ServiceContext = {
      database,
      ambient,
      logger,
      actor: { userId: null, name: 'studio', role: 'admin', ipAddress: null },
      process: {
        wakeWorkers() {},
        cancelRun() {},
        trouble: () => null,
        runLogGrew,
        backendHealth: async () => STARTING,
        planTurns: () => Promise.reject(new Unavailable(STARTING.message)),
        backendLive: () => Promise.reject(new Unavailable(STARTING.message)),
        backendHeld: () => Promise.reject(new Unavailable(STARTING.message)),
        backendsOf: () => Promise.reject(new Unavailable(STARTING.message)),
        checkServer: () => Promise.reject(new Unavailable(STARTING.message)),
        backendHistory: () => ({ stepMs: 0, replicas: [] }),
        secrets,
        scoreJobs,
      },
    };
    const admin = await ensureFirstAdmin({ ctx: bare });
    await loadSamples({ ctx: bare, input: { packageRoot } });
    goOn();
    parts.worker = await startWorkerOfThisProcess({
      database,
      ambient,
      logger,
      environment,
      packageRoot,
      secrets,
      serverRestarted: (name) => parts.rechecks?.request(name),
      runLogGrew,
    });
    goOn();

    const services = {
      database,
      ambient,
      logger,
      process: { ...parts.worker.process, runLogGrew, secrets, scoreJobs },
    };
    const ctx: ServiceContext = { ...services, actor: bare.actor };
    parts.rechecks = new Rechecks((name, signal) => recheckWhenServing(ctx, name, signal), logger);
    const pages = await parts.pages;
    const sockets = createWebSockets({ services, runLog, addresses, metrics, passOn: pages ? pages.upgrade : null });
    parts.sockets = sockets;
    app = createHttpApp({
      services,
      runLog,
      addresses,
      metrics,
      development,
      pages: pages ? pages.draw : null,
      publicFiles: await listPublicFiles(join(packageRoot, 'public')),
      onSignOut: sockets.closeSignIn,
    });
    parts.programToken = { ctx, token: await openToPrograms(ctx, environment.dataDir, admin.userId, addresses) };
    const { token } = await makeOneTimeToken({ ctx, input: { userId: admin.userId } });
    goOn();
    becomeReady();
    return { url: addresses.publicUrl, signInUrl: `${addresses.publicUrl}/sign-in?token=${token}`, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** How long one part may take to close before the next is closed. */
const PART_LIMIT_MS = 10_000;
const STARTING = { ok: false, message: 'The studio is starting.', modelName: null };

async function loadPages(options: StudioOptions, port: number): Promise<Pages> {
  const { packageRoot, development, environment } = options;
  if (!development && !existsSync(join(packageRoot, '.next', 'BUILD_ID')))
    throw new Unavailable('The pages are not built. Run "npm run build", then start again.');
  return openPages({ folder: packageRoot, development, hostname: environment.host, port });
}

/** Writes server.json; the token a killed predecessor left there is taken back first. */
async function openToPrograms(
  ctx: ServiceContext,
  dataDir: string,
  userId: string,
  addresses: Addresses,
): Promise<string> {
  const old = await readServerFile(dataDir);
  if (old && (old.pid === process.pid || !isAlive(old.pid))) await revokeProgramToken({ ctx, input: old });
  const { token } = await makeProgramToken({
    ctx,
    input: { userId, purpose: 'programs of the user who started the studio' },
  });
  await writeServerFile(dataDir, { url: addresses.localUrl, publicUrl: addresses.publicUrl, pid: process.pid, token });
  return token;
}

/** One part that cannot be closed, or hangs, must not keep the others open: least of all the database. */
async function takeApart(what: string, closing: Promise<unknown> | undefined, logger: Logger): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new TimedOut(`The ${what} did not close in time.`)), PART_LIMIT_MS);
  });
  try {
    await Promise.race([closing, late]);
  } catch (error) {
    logger.warn({ err: error }, `Closing the ${what} failed`);
  } finally {
    clearTimeout(timer);
  }
}
