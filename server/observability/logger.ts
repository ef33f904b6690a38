/** One structured line a fact, on standard error. Secrets are never handed to it. */
import pino from 'pino';

export type Logger = pino.Logger;

export function createLogger(level: pino.LevelWithSilent): Logger {
  return pino(
    { level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: false }),
  );
}

export const silentLogger: Logger = pino({ level: 'silent' });
