/**
 * The one place where a failure becomes a tRPC error: the family keeps its sentence, everything else becomes
 * "Something went wrong here" with an id that is in the log beside the real error. Details never leave the log.
 */
import { TRPCError } from '@trpc/server';
import { ZodError } from 'zod';
import { ERROR_EDGES } from '../core/errors';
import { explainError } from '../observability/explain-error';
import type { Logger } from '../observability/logger';
import { inputError } from '../services/inputs';

const mapped = new WeakSet<TRPCError>();

export function toTrpcError(error: unknown, logger: Logger, where: string): TRPCError {
  if (error instanceof TRPCError && mapped.has(error)) return error;
  const made = mapError(error, logger, where);
  mapped.add(made);
  return made;
}

function mapError(error: unknown, logger: Logger, where: string): TRPCError {
  const thrown = error instanceof TRPCError && error.cause ? error.cause : error;
  const refused = thrown instanceof ZodError;
  const cause = refused ? inputError(thrown) : thrown;
  // tRPC's own refusals (no such procedure, unreadable JSON, a body that is too large) say what they are.
  if (!refused && error instanceof TRPCError && error.code !== 'INTERNAL_SERVER_ERROR')
    return new TRPCError({ code: error.code, message: SENTENCES[error.code] ?? error.message });
  const { code, message } = explainError(cause, logger, where);
  const trpcCode = code === 'internal' ? 'INTERNAL_SERVER_ERROR' : (ERROR_EDGES[code].trpc as TRPCError['code']);
  return new TRPCError({ code: trpcCode, message });
}

const SENTENCES: Partial<Record<TRPCError['code'], string>> = {
  PARSE_ERROR: 'The request is not JSON in the form this address takes.',
  PAYLOAD_TOO_LARGE: 'The request is larger than this address takes.',
  NOT_FOUND: 'There is no such operation.',
  METHOD_NOT_SUPPORTED: 'This operation is not reached by this method.',
  UNSUPPORTED_MEDIA_TYPE: 'The body must be JSON, with the header Content-Type: application/json.',
};
