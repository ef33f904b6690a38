/**
 * The whole HTTP interface as one request handler, without a server of its own, so that tests mount it as it is:
 * guards → health → sign-in → tRPC, downloads, metrics → pages.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { NotFound, Unauthenticated } from '../core/errors';
import type { Metrics } from '../observability/metrics';
import type { RequestContext } from '../routers/trpc';
import type { Actor } from '../services/context';
import { requireRole } from '../services/context';
import type { SignedIn } from '../services/people/actor-of-secret';
import type { Addresses } from './addresses';
import { authenticate, bearerToken } from './authenticate';
import { sendExport, sendOutput, sendTokens } from './downloads';
import { askForPageAgain, isPublicPath, signInAddress } from './pages';
import { checkHost, checkOrigin, requestUrl } from './request-guard';
import { sendError, sendJson, sendMethodNotAllowed } from './respond';
import { setPagePolicy, setSecurityHeaders } from './security-headers';
import { createSignInRoutes } from './sign-in-routes';
import { createTrpcHandler, TRPC_PATH } from './trpc-handler';

export interface HttpAppOptions {
  services: RequestContext['services'];
  runLog: RequestContext['runLog'];
  addresses: Addresses;
  metrics: Metrics;
  /** Draws pages and serves their static files (Next). Null where there are none, as in most tests. */
  pages: ((req: IncomingMessage, res: ServerResponse) => Promise<void>) | null;
  /** Paths of static files anyone may fetch, as `/favicon.ico`. */
  publicFiles: ReadonlySet<string>;
  development: boolean;
  /** Called when a sign-in ends, so that its WebSockets end too. */
  onSignOut(signInId: string): void;
}

export type HttpApp = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

interface Call {
  req: IncomingMessage;
  res: ServerResponse;
  url: URL;
  signedIn: SignedIn | null;
}

export function createHttpApp(options: HttpAppOptions): HttpApp {
  const { services, addresses, metrics } = options;
  const { logger } = services;
  const handleTrpc = createTrpcHandler(options);
  const signIn = createSignInRoutes(options);
  const seconds = metrics.histogram(
    'studio_http_request_seconds',
    'Time until an answer was sent, by route and status.',
  );

  async function answer(req: IncomingMessage, res: ServerResponse, route: { name: string }): Promise<void> {
    const url = requestUrl(req);
    setSecurityHeaders(res, addresses);
    if (url.pathname === '/healthz') {
      route.name = '/healthz';
      return readOnly(req, res, () => sendJson(res, 200, { ok: true }));
    }
    checkHost(req, addresses);
    checkOrigin(req, addresses, { always: false, bearer: bearerToken(req) !== null });
    if (isPublicPath(url.pathname, options.publicFiles, options.development)) {
      route.name = 'static';
      return drawPage(req, res);
    }
    const call: Call = { req, res, url, signedIn: await authenticate(req, services, addresses) };
    if (url.pathname.startsWith('/api/')) return answerApi(call, route);
    route.name = 'page';
    return answerPage(call);
  }

  async function answerApi({ req, res, url, signedIn }: Call, route: { name: string }): Promise<void> {
    const { pathname } = url;
    if (pathname.startsWith(TRPC_PATH)) {
      route.name = TRPC_PATH;
      return handleTrpc(req, res, signedIn?.actor ?? null);
    }
    if (pathname === '/api/sign-in' || pathname === '/api/sign-out') {
      route.name = pathname;
      if (req.method !== 'POST') return sendMethodNotAllowed(res, 'POST');
      return pathname === '/api/sign-in' ? signIn.signIn(req, res) : signIn.signOut(req, res, signedIn);
    }
    if (!signedIn) throw new Unauthenticated('You are not signed in. Sign in and try again.');
    const ctx = { ...services, actor: signedIn.actor };
    const download = /^\/api\/(trajectories|runs|outputs)\/([^/]+)(?:\/(tokens|export))?$/.exec(pathname);
    const kind = download ? `${download[1]}/${download[3] ?? ''}` : pathname;
    const id = decodeId(download?.[2] ?? '');
    route.name = kind;
    if (kind === 'trajectories/tokens')
      return readOnly(req, res, () => sendTokens({ ctx, req, res, url, trajectoryId: id }));
    if (kind === 'runs/export') return readOnly(req, res, () => sendExport({ ctx, res, url, runId: id }));
    if (kind === 'outputs/') return readOnly(req, res, () => sendOutput({ ctx, res, outputId: id }));
    if (kind === '/api/metrics') return readOnly(req, res, () => sendMetrics(res, signedIn.actor));
    route.name = 'unknown';
    throw new NotFound('There is nothing at this address.');
  }

  function sendMetrics(res: ServerResponse, actor: Actor): void {
    requireRole({ ...services, actor }, 'viewer', 'Reading the metrics');
    res.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', 'Cache-Control': 'no-store' });
    res.end(metrics.text());
  }

  async function answerPage({ req, res, url, signedIn }: Call): Promise<void> {
    if (!signedIn && url.pathname !== '/sign-in') {
      // A strict cookie does not travel when a page of another site links here: let the browser come by itself.
      if (req.headers['sec-fetch-site'] === 'cross-site' && req.method === 'GET') return askForPageAgain(res, url);
      res.writeHead(303, { Location: signInAddress(url), 'Cache-Control': 'no-store' });
      res.end();
      return;
    }
    return drawPage(req, res);
  }

  async function drawPage(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (!options.pages) throw new NotFound('There is nothing at this address.');
    setPagePolicy(req, res, options.development);
    await options.pages(req, res);
  }

  return async (req, res) => {
    const route = { name: 'refused' };
    const startedAt = performance.now();
    res.once('close', () => {
      const status = res.writableFinished ? String(res.statusCode) : 'broken';
      seconds.observe((performance.now() - startedAt) / 1000, { route: route.name, status });
    });
    try {
      await answer(req, res, route);
    } catch (error) {
      sendError(res, error, logger, `${req.method} ${route.name}`);
    }
  };
}

async function readOnly(req: IncomingMessage, res: ServerResponse, send: () => void | Promise<void>): Promise<void> {
  if (req.method === 'GET' || req.method === 'HEAD') return send();
  sendMethodNotAllowed(res, 'GET');
}

/** An undecodable name is left as it is: no identifier looks like it. */
function decodeId(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
