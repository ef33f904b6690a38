/** tRPC over plain HTTP. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import { appRouter } from '../routers/app-router';
import type { RequestContext } from '../routers/trpc';
import type { Actor } from '../services/context';

export const TRPC_PATH = '/api/trpc/';
/** Bytes of one request: an imported dataset is the largest thing that comes this way. */
export const MAX_TRPC_BODY_BYTES = 128 * 2 ** 20;
/** Without a sign-in nothing large has a reason to come. */
const MAX_ANONYMOUS_BODY_BYTES = 64 * 2 ** 10;

/** Calls in one request. */
const MAX_BATCH = 50;

export function createTrpcHandler(
  options: Pick<RequestContext, 'services' | 'runLog'>,
): (req: IncomingMessage, res: ServerResponse, actor: Actor | null) => void {
  return (req, res, actor) => {
    res.setHeader('Cache-Control', 'no-store');
    createHTTPHandler({
      router: appRouter,
      basePath: TRPC_PATH,
      maxBodySize: actor ? MAX_TRPC_BODY_BYTES : MAX_ANONYMOUS_BODY_BYTES,
      maxBatchSize: MAX_BATCH,
      allowMethodOverride: false,
      createContext: (): RequestContext => ({ services: options.services, runLog: options.runLog, actor }),
    })(req, res);
  };
}
