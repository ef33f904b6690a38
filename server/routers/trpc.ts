/**
 * The ladder of procedures: public → viewer → reviewer → operator → admin. Routers build on these alone, so that no
 * route can forget its check; `meta.role` says which rung a procedure stands on, for a test that walks the router.
 */
import { initTRPC } from '@trpc/server';
import { Unauthenticated } from '../core/errors';
import { transformer } from '../core/transformer';
import type { Role } from '../core/vocabulary';
import { silentLogger } from '../observability/logger';
import { createTracer } from '../observability/tracer';
import type { RunLogBus } from '../realtime/run-log-bus';
import { type Actor, requireRole, type ServiceContext } from '../services/context';
import { toTrpcError } from './error-mapping';

/** What an edge (HTTP request, WebSocket connection) hands to the routers. */
export interface RequestContext {
  /** Everything a service needs, without the caller. */
  services: Omit<ServiceContext, 'actor'>;
  /** Null when nobody is signed in. */
  actor: Actor | null;
  runLog: RunLogBus;
  /** Resolves when the caller's connection has taken what was sent; absent where one answer is all there is. */
  connectionDrained?: (signal: AbortSignal | undefined) => Promise<void>;
}

export interface ProcedureMeta {
  /** The least role that may call it; 'public' needs no sign-in. */
  role: Role | 'public';
}

const t = initTRPC
  .context<RequestContext>()
  .meta<ProcedureMeta>()
  .create({
    transformer,
    // Failures outside a procedure (unreadable JSON, an unknown path) come here unmapped. A stack is for the log.
    errorFormatter: ({ shape, error, ctx, path }) => {
      const told = toTrpcError(error, ctx?.services.logger ?? silentLogger, path ?? 'trpc');
      const { stack: _, ...data } = shape.data;
      return { ...shape, message: told.message, data };
    },
  });

export const router = t.router;

/** Every failure of a procedure, input errors included, becomes one sentence for the person; every call is a span. */
const withErrorMapping = t.procedure.use(async ({ ctx, next, path }) => {
  const { logger } = ctx.services;
  return createTracer(logger).span(`trpc ${path}`, null, async () => {
    const result = await next();
    if (result.ok) return result;
    throw toTrpcError(result.error, logger, path);
  });
});

function rung(role: Role) {
  return withErrorMapping.meta({ role }).use(({ ctx, next, path }) => {
    if (!ctx.actor) throw new Unauthenticated('You are not signed in. Sign in and try again.');
    const serviceContext: ServiceContext = { ...ctx.services, actor: ctx.actor };
    requireRole(serviceContext, role, `The operation ${path}`);
    return next({ ctx: { ...ctx, actor: ctx.actor, serviceContext } });
  });
}

export const procedures = {
  public: withErrorMapping.meta({ role: 'public' }),
  viewer: rung('viewer'),
  reviewer: rung('reviewer'),
  operator: rung('operator'),
  admin: rung('admin'),
};
