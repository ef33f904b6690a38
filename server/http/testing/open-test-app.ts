/** The HTTP app on a real server with a real database, without Next: for tests of everything but pages. */
import { createServer } from 'node:http';
import { insertSignIn, insertUser } from '../../../db/queries/sign-ins';
import { testDatabase } from '../../../db/testing/database';
import { systemAmbient } from '../../core/ambient';
import type { Role } from '../../core/vocabulary';
import { type Logger, silentLogger } from '../../observability/logger';
import { createMetrics } from '../../observability/metrics';
import { createRunLogBus } from '../../realtime/run-log-bus';
import type { ServiceContext } from '../../services/context';
import { hashSecret, newSecret } from '../../services/people/secrets';
import { idleProcess } from '../../services/testing/idle-process';
import { createAddresses } from '../addresses';
import { createHttpApp, type HttpAppOptions } from '../app';
import { listen } from '../listen';
import { createWebSockets } from '../web-socket';

export type TestApp = Awaited<ReturnType<typeof openTestApp>>;

export async function openTestApp(options: { logger?: Logger; pages?: HttpAppOptions['pages'] } = {}) {
  const database = await testDatabase();
  const runLog = createRunLogBus();
  const ambient = systemAmbient();
  const logger = options.logger ?? silentLogger;
  const services: Omit<ServiceContext, 'actor'> = {
    database,
    ambient,
    logger,
    process: idleProcess({
      runLogGrew: (runId) => runLog.grew(runId),
      backendHealth: async () => ({ ok: true, message: 'Ready.', modelName: 'tutorial' }),
    }),
  };
  const server = createServer();
  const port = await listen(server, '127.0.0.1', 0);
  const addresses = createAddresses({ host: '127.0.0.1', port, publicUrl: null });
  const metrics = createMetrics();
  const sockets = createWebSockets({ services, runLog, addresses, metrics, passOn: null });
  const app = createHttpApp({
    services,
    runLog,
    addresses,
    metrics,
    pages: options.pages ?? null,
    publicFiles: new Set(['/favicon.ico']),
    development: false,
    onSignOut: sockets.closeSignIn,
  });
  server.on('request', (req, res) => void app(req, res));
  server.on('upgrade', (req, socket, head) => void sockets.handleUpgrade(req, socket, head));

  /** A person with this role, and a secret of the kind. */
  async function person(role: Role, kind: 'program' | 'browser' | 'one_time' = 'program') {
    const userId = ambient.newId('usr');
    const secret = newSecret();
    const now = ambient.now();
    await insertUser(database.db, { id: userId, name: `${role} ${userId}`, role, createdAtMs: now });
    const signIn = { id: ambient.newId('sgn'), userId, kind, secretHash: hashSecret(secret) };
    await insertSignIn(database.db, { ...signIn, createdAtMs: now, expiresAtMs: now + 3600_000 });
    const ctx: ServiceContext = { ...services, actor: { userId, name: `${role} ${userId}`, role, ipAddress: null } };
    return { userId, secret, ctx, bearer: { authorization: `Bearer ${secret}` } };
  }

  return {
    url: addresses.publicUrl,
    port,
    services,
    runLog,
    server,
    person,
    webSockets: () => sockets.clients(),
    async close() {
      sockets.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await database.close();
    },
  };
}
