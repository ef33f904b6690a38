/** One structured line a fact, on standard error. Secrets are never handed to it, and are taken out if they are. */
import pino from 'pino';
import { redact, redactText } from './redact';

export type Logger = pino.Logger;

export function createLogger(
  level: pino.LevelWithSilent,
  destination: pino.DestinationStream = pino.destination({ fd: 2, sync: false }),
): Logger {
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: redact },
      formatters: { log: (fields) => redact(fields) as Record<string, unknown> },
      hooks: {
        logMethod(args, method) {
          const last = args.length - 1;
          if (typeof args[last] === 'string') args[last] = redactText(args[last]);
          method.apply(this, args);
        },
      },
    },
    destination,
  );
}

export const silentLogger: Logger = pino({ level: 'silent' });
