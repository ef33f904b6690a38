/**
 * The ladder of procedures: public → viewer → reviewer → operator → admin. Routers build on these alone, so that no
 * route can forget its check; `meta.role` says which rung a procedure stands on, for a test that walks the router.
 */
import { initTRPC, TRPCError } from '@trpc/server';
import superjson from 'superjson';
import { Unauthenticated } from '../core/errors';
import type { Role } from '../core/vocabulary';
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
}

export interface ProcedureMeta {
  /** The least role that may call it; 'public' needs no sign-in. */
  role: Role | 'public';
}

const t = initTRPC
  .context<RequestContext>()
  .meta<ProcedureMeta>()
  .create({
    transformer: superjson,
    // A stack is for the log. tRPC would add it outside production.
    errorFormatter: ({ shape }) => ({ ...shape, data: { ...shape.data, stack: undefined } }),
  });

export const router = t.router;

/** Every failure of a procedure, input errors included, becomes one sentence for the person. */
const withErrorMapping = t.procedure.use(async ({ ctx, next, path }) => {
  const result = await next();
  if (result.ok) return result;
  throw toTrpcError(result.error, ctx.services.logger, path);
});

function rung(role: Role) {
  return withErrorMapping.meta({ role }).use(({ ctx, next, path }) => {
    if (!ctx.actor) throw asCause(new Unauthenticated('You are not signed in. Sign in and try again.'));
    const serviceContext: ServiceContext = { ...ctx.services, actor: ctx.actor };
    try {
      requireRole(serviceContext, role, `The operation ${path}`);
    } catch (error) {
      throw asCause(error);
    }
    return next({ ctx: { ...ctx, actor: ctx.actor, serviceContext } });
  });
}

/** tRPC wraps foreign errors itself; wrapping here keeps the family's error as the cause. */
function asCause(error: unknown): TRPCError {
  return new TRPCError({ code: 'INTERNAL_SERVER_ERROR', cause: error });
}

export const procedures = {
  public: withErrorMapping.meta({ role: 'public' }),
  viewer: rung('viewer'),
  reviewer: rung('reviewer'),
  operator: rung('operator'),
  admin: rung('admin'),
};
