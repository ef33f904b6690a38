/** Errors of the family, carried over a process border by code. */

import type { ErrorCode, StudioError } from '../../core/errors';
import {
  Cancelled,
  Conflict,
  Forbidden,
  Invalid,
  isStudioError,
  NotFound,
  TimedOut,
  Unauthenticated,
  Unavailable,
} from '../../core/errors';
import type { WireError } from './protocol';

const CLASSES: Record<ErrorCode, new (message: string, details?: Record<string, unknown>) => StudioError> = {
  not_found: NotFound,
  invalid: Invalid,
  conflict: Conflict,
  forbidden: Forbidden,
  unauthenticated: Unauthenticated,
  unavailable: Unavailable,
  timeout: TimedOut,
  cancelled: Cancelled,
};

export function toWireError(error: unknown): WireError {
  if (isStudioError(error)) return { code: error.code, message: error.message, details: error.details };
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? error.stack : undefined;
  return { code: 'unavailable', message: `The embedded model failed: ${message}`, details: { stack } };
}

export function fromWireError(error: WireError): StudioError {
  return new CLASSES[error.code](error.message, error.details);
}
