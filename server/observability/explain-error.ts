/**
 * From any failure to what a person is told, in one place for every edge. The family keeps its sentence; a failure
 * nobody foresaw becomes a sentence with an id, and the log has the rest under that id. Details stay in the log.
 */
import { randomBytes } from 'node:crypto';
import { toStudioError } from '../../db/database-errors';
import { type ErrorCode, isStudioError } from '../core/errors';
import type { Logger } from './logger';

export interface Explained {
  code: ErrorCode | 'internal';
  message: string;
}

/** Logs the error, once, and says what to tell. */
export function explainError(error: unknown, logger: Logger, where: string): Explained {
  const known = toStudioError(error);
  if (isStudioError(known)) {
    logger.info({ code: known.code, details: known.details, err: known.cause, where }, known.message);
    return { code: known.code, message: known.message };
  }
  const errorId = randomBytes(5).toString('hex');
  logger.error({ err: error, errorId, where }, 'An error nobody foresaw');
  const message = `Something went wrong here. The log of the studio has the details under ${errorId}.`;
  return { code: 'internal', message };
}
