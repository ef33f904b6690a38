/** What a person is told of a failure nobody foresaw: a sentence with an id, and the log has the rest under that id. */
import { randomBytes } from 'node:crypto';
import type { Logger } from './logger';

/** Logs the error and returns the sentence. */
export function unknownErrorSentence(error: unknown, logger: Logger, where: string): string {
  const errorId = randomBytes(5).toString('hex');
  logger.error({ err: error, errorId, where }, 'An error nobody foresaw');
  return `Something went wrong here. The log of the studio has the details under ${errorId}.`;
}
