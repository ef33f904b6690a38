/**
 * The one WebSocket a tab opens, at /api/ws: tRPC subscriptions for someone who is signed in. The upgrade is checked
 * like a request that changes state; a reader that falls behind is waited for, and one that is gone is ended.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { applyWSSHandler } from '@trpc/server/adapters/ws';
import { WebSocket, WebSocketServer } from 'ws';
import { ERROR_EDGES, NotFound, Unauthenticated } from '../core/errors';
import { explainError } from '../observability/explain-error';
import type { Metrics } from '../observability/metrics';
import { appRouter } from '../routers/app-router';
import type { RequestContext } from '../routers/trpc';
import type { SignedIn } from '../services/people/actor-of-secret';
import type { Addresses } from './addresses';
import { authenticate, bearerToken } from './authenticate';
import { checkHost, checkOrigin, requestUrl } from './request-guard';

export const WEB_SOCKET_PATH = '/api/ws';
const MAX_MESSAGE_BYTES = 256 * 1024;
/** Bytes on their way to one reader before its subscriptions wait. */
const MAX_BUFFERED_BYTES = 1024 * 1024;
const DRAIN_CHECK_MS = 20;
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface WebSockets {
  /** Handles an upgrade; `passOn` gets those of other paths (Next in development). */
  handleUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>;
  /** Those open now. */
  clients(): ReadonlySet<WebSocket>;
  /** Ends the sockets of a sign-in that is over. */
  closeSignIn(signInId: string): void;
  /** Tells every reader to come back, then closes. */
  close(): void;
}

export function createWebSockets(options: {
  services: RequestContext['services'];
  runLog: RequestContext['runLog'];
  addresses: Addresses;
  metrics: Metrics;
  passOn: ((req: IncomingMessage, socket: Duplex, head: Buffer) => boolean) | null;
}): WebSockets {
  const { services, addresses } = options;
  const wss = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES });
  const signedInOf = new WeakMap<IncomingMessage, SignedIn>();
  const socketsOf = new Map<string, Set<WebSocket>>();
  options.metrics.gauge('studio_web_sockets', 'WebSockets open now.', () => wss.clients.size);
  const handler = applyWSSHandler({
    wss,
    router: appRouter,
    keepAlive: { enabled: true, pingMs: 30_000, pongWaitMs: 10_000 },
    createContext: ({ req, res }): RequestContext => ({
      services,
      runLog: options.runLog,
      actor: signedInOf.get(req)?.actor ?? null,
      connectionDrained: (signal) => drained(res, signal),
    }),
  });

  function track(ws: WebSocket, { signInId, expiresAtMs }: SignedIn): void {
    const sockets = socketsOf.get(signInId) ?? new Set();
    socketsOf.set(signInId, sockets.add(ws));
    const end = setTimeout(() => ws.close(4401, 'sign-in is over'), clampTimer(expiresAtMs - services.ambient.now()));
    end.unref();
    ws.once('close', () => {
      clearTimeout(end);
      sockets.delete(ws);
      if (sockets.size === 0 && socketsOf.get(signInId) === sockets) socketsOf.delete(signInId);
    });
  }

  return {
    async handleUpgrade(req, socket, head) {
      // A socket that breaks before anyone listens to it must not end the process.
      socket.on('error', () => undefined);
      try {
        const { pathname } = requestUrl(req);
        checkHost(req, addresses);
        checkOrigin(req, addresses, { always: true, bearer: bearerToken(req) !== null });
        if (pathname !== WEB_SOCKET_PATH) {
          if (options.passOn?.(req, socket, head)) return;
          throw new NotFound('There is no WebSocket at this address.');
        }
        const signedIn = await authenticate(req, services, addresses);
        if (!signedIn) throw new Unauthenticated('You are not signed in. Sign in and try again.');
        if (socket.destroyed) return;
        signedInOf.set(req, signedIn);
        wss.handleUpgrade(req, socket, head, (ws) => {
          track(ws, signedIn);
          wss.emit('connection', ws, req);
        });
      } catch (error) {
        refuse(socket, error, services.logger);
      }
    },
    clients: () => wss.clients,
    closeSignIn(signInId) {
      for (const ws of socketsOf.get(signInId) ?? []) ws.close(4401, 'signed out');
    },
    close() {
      handler.broadcastReconnectNotification();
      for (const ws of wss.clients) ws.close(1012, 'the studio stops');
      wss.close();
    },
  };
}

function refuse(socket: Duplex, error: unknown, logger: RequestContext['services']['logger']): void {
  const { code, message } = explainError(error, logger, 'upgrade');
  const status = code === 'internal' ? 500 : ERROR_EDGES[code].http;
  const body = JSON.stringify({ error: { code, message } });
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `X-Content-Type-Options: nosniff\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}

/** Waits while too much is on its way to the reader; a reader that never takes it is ended by the keep-alive. */
async function drained(ws: WebSocket, signal: AbortSignal | undefined): Promise<void> {
  while (ws.bufferedAmount > MAX_BUFFERED_BYTES && ws.readyState === WebSocket.OPEN && !signal?.aborted)
    await new Promise((resolve) => setTimeout(resolve, DRAIN_CHECK_MS));
}

function clampTimer(ms: number): number {
  return Math.min(Math.max(0, ms), MAX_TIMER_MS);
}
