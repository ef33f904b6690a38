/**
 * The one place where a failure becomes a tRPC error: the family keeps its sentence, everything else becomes
 * "Something went wrong here" with an id that is in the log beside the real error. Details never leave the log.
 */
import { TRPCError } from '@trpc/server';
import { ZodError } from 'zod';
import { ERROR_EDGES, isStudioError } from '../core/errors';
import type { Logger } from '../observability/logger';
import { unknownErrorSentence } from '../observability/unknown-error';
import { describeIssues } from '../services/inputs';

export function toTrpcError(error: unknown, logger: Logger, where: string): TRPCError {
  const cause = error instanceof TRPCError && error.cause ? error.cause : error;
  if (isStudioError(cause)) {
    logger.info({ code: cause.code, details: cause.details, where }, cause.message);
    return new TRPCError({ code: ERROR_EDGES[cause.code].trpc as TRPCError['code'], message: cause.message, cause });
  }
  if (cause instanceof ZodError) return new TRPCError({ code: 'BAD_REQUEST', message: describeIssues(cause), cause });
  if (error instanceof TRPCError && error.code !== 'INTERNAL_SERVER_ERROR') return error;
  return new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: unknownErrorSentence(cause, logger, where) });
}
