/** The studio's process: environment in, one address out, and a clean end on SIGINT and SIGTERM. */
import { fileURLToPath } from 'node:url';
import { format, stripVTControlCharacters } from 'node:util';
import { systemAmbient } from './core/ambient';
import { ERROR_EDGES, isStudioError } from './core/errors';
import { parseEnvironment } from './env';
import { createLogger, type Logger } from './observability/logger';
import { type Studio, startStudio } from './studio';

/** A stop that takes longer than this has met something that hangs. */
const STOP_LIMIT_MS = 30_000;
/** The folder of package.json: one above server/ and one above dist/. */
const packageRoot = fileURLToPath(new URL('..', import.meta.url));

let logger: Logger = createLogger('info');
const starting = new AbortController();
let studio: Studio | null = null;
let stopping = false;

// Standard output is for the address alone; what libraries print there belongs in the log.
console.log = console.info = (...args: unknown[]) => logger.info(stripVTControlCharacters(format(...args)).trim());

try {
  const environment = parseEnvironment(process.env);
  logger = createLogger(environment.logLevel);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => onSignal(signal));
  process.on('uncaughtException', (error) => fail(error));
  // A promise nobody waits for is a fault to repair, but no reason to end everyone's work.
  process.on('unhandledRejection', (reason) => logger.error({ err: reason }, 'a rejection nobody handled'));
  const options = { environment, ambient: systemAmbient(), logger, packageRoot, withPages: true, onFatal: fail };
  studio = await startStudio({ ...options, development: process.env.NODE_ENV !== 'production' }, starting.signal);
  process.stdout.write(`Open ${studio.signInUrl}\nPress Ctrl-C to stop.\n`);
} catch (error) {
  fail(error);
}

function onSignal(signal: NodeJS.Signals): void {
  if (stopping) process.exit(130);
  process.stderr.write('Stopping. Press Ctrl-C again to stop at once.\n');
  logger.info({ signal }, 'stopping');
  if (studio) void stop(0);
  else starting.abort();
  stopping = true;
}

/** Tells the person in one sentence, closes what is open, and ends with the error's exit code. */
function fail(error: unknown): void {
  if (isStudioError(error) && error.code === 'cancelled' && starting.signal.aborted) process.exit(0);
  const known = isStudioError(error);
  if (known) process.stderr.write(`${error.message}\n`);
  else
    process.stderr.write(
      `The studio met an error nobody foresaw: ${error instanceof Error ? error.message : String(error)}\n`,
    );
  logger[known ? 'debug' : 'fatal']({ err: error }, 'the studio ends');
  const exitCode = known ? ERROR_EDGES[error.code].exit : 1;
  if (stopping || !studio) process.exit(exitCode);
  stopping = true;
  void stop(exitCode);
}

async function stop(exitCode: number): Promise<void> {
  setTimeout(() => {
    process.stderr.write(`The studio did not close within ${STOP_LIMIT_MS / 1000} seconds and ends now.\n`);
    process.exit(exitCode || 1);
  }, STOP_LIMIT_MS).unref();
  await studio?.stop();
  process.exit(exitCode);
}
