/**
 * The error family. Every failure a person can meet is one of these; each edge (tRPC, HTTP, command line)
 * maps the family once. `message` is a sentence for the person, `details` is for the log.
 */
export type ErrorCode =
  | 'not_found'
  | 'invalid'
  | 'conflict'
  | 'forbidden'
  | 'unauthenticated'
  | 'unavailable'
  | 'timeout'
  | 'cancelled';

export abstract class StudioError extends Error {
  abstract readonly code: ErrorCode;
  readonly details: Record<string, unknown>;
  constructor(message: string, details: Record<string, unknown> = {}, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.details = details;
  }
}

/** What was asked for does not exist. */
export class NotFound extends StudioError {
  readonly code = 'not_found';
}
/** The input is wrong; the message says where and what is right. */
export class Invalid extends StudioError {
  readonly code = 'invalid';
}
/** Someone else changed it first, or it is in a state that does not allow this. */
export class Conflict extends StudioError {
  readonly code = 'conflict';
}
/** Signed in, but the role does not cover this. */
export class Forbidden extends StudioError {
  readonly code = 'forbidden';
}
/** Not signed in. */
export class Unauthenticated extends StudioError {
  readonly code = 'unauthenticated';
}
/** Something this needs (a server, a sandbox level, a model file, disk space) is not there now. */
export class Unavailable extends StudioError {
  readonly code = 'unavailable';
}
/** A deadline passed. */
export class TimedOut extends StudioError {
  readonly code = 'timeout';
}
/** Stopped on request. */
export class Cancelled extends StudioError {
  readonly code = 'cancelled';
}

/** The one place that knows HTTP status and process exit code of each error. */
export const ERROR_EDGES: Record<ErrorCode, { http: number; exit: number; trpc: string }> = {
  not_found: { http: 404, exit: 4, trpc: 'NOT_FOUND' },
  invalid: { http: 400, exit: 2, trpc: 'BAD_REQUEST' },
  conflict: { http: 409, exit: 5, trpc: 'CONFLICT' },
  forbidden: { http: 403, exit: 6, trpc: 'FORBIDDEN' },
  unauthenticated: { http: 401, exit: 6, trpc: 'UNAUTHORIZED' },
  unavailable: { http: 503, exit: 7, trpc: 'SERVICE_UNAVAILABLE' },
  timeout: { http: 504, exit: 8, trpc: 'TIMEOUT' },
  cancelled: { http: 499, exit: 130, trpc: 'CLIENT_CLOSED_REQUEST' },
};

/** What it needs may be there again in a moment (a server that is away or overloaded): worth trying again. */
export function isTransient(error: unknown): error is Unavailable {
  return error instanceof Unavailable && error.details.retry === true;
}

export function isStudioError(error: unknown): error is StudioError {
  return error instanceof StudioError;
}
