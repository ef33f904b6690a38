/** The database's own failures as sentences for people. Passwords and statement texts never leave here. */
import { Conflict, Invalid, isStudioError, type StudioError, Unavailable } from '../server/core/errors';

interface Coded {
  /** The driver's error: unlike drizzle's around it, it shows no values. */
  source: Error;
  code: string;
  constraint: string | null;
  message: string;
}

/** The driver's code (SQLSTATE, or a system word such as ECONNREFUSED), found through drizzle's wrapping. */
export function codeOf(error: unknown): Coded | null {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string') {
      const constraint = 'constraint_name' in at && typeof at.constraint_name === 'string' ? at.constraint_name : null;
      return { source: at, code: at.code, constraint, message: at.message };
    }
  }
  return null;
}

export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const coded = codeOf(error);
  return coded?.code === '23505' && (constraint === undefined || coded.constraint === constraint);
}

/** Two writers met: nothing was changed, the same statement may be sent again. */
export function isRetryable(error: unknown): boolean {
  return ['40001', '40P01'].includes(codeOf(error)?.code ?? '');
}

const LOST_CONNECTION = ['CONNECTION_CLOSED', 'CONNECTION_ENDED', 'CONNECTION_DESTROYED', 'CONNECT_TIMEOUT'];
const LOST_CONNECTION_SYSTEM = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOENT', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT'];

/** A failure while the product runs, fit for a person and for the log. What is no database failure passes unchanged. */
export function toStudioError(error: unknown): unknown {
  if (isStudioError(error)) return error;
  const coded = codeOf(error);
  if (!coded) return error;
  const options = { cause: coded.source };
  const details = { code: coded.code };
  if (['53100', 'ENOSPC', 'EDQUOT'].includes(coded.code))
    return new Unavailable('The disk of the database is full. Free space, then try again.', details, options);
  if (coded.code.startsWith('57P') || coded.code.startsWith('08') || LOST_CONNECTION.includes(coded.code))
    return new Unavailable(
      'The database is not reachable any more. Check that it runs, then try again.',
      details,
      options,
    );
  if (LOST_CONNECTION_SYSTEM.includes(coded.code))
    return new Unavailable('The database cannot be reached. Check that it runs, then try again.', details, options);
  if (coded.code === '53300')
    return new Unavailable(
      'The database has no free connection. Raise max_connections or run fewer workers.',
      details,
      options,
    );
  if (isRetryable(error))
    return new Conflict('Someone else changed the same data at this moment. Try again.', details, options);
  return new DatabaseFailure(coded, error);
}

/**
 * Everything else the database refuses: a fault of this code. drizzle's own message would carry the statement with all
 * its values (people's text, whole token blocks); this one has the database's words only.
 */
export class DatabaseFailure extends Error {
  readonly sqlState: string;
  constructor(coded: { code: string; message: string }, original: unknown) {
    super(`The database refused a statement (${coded.code}): ${coded.message}`);
    this.name = 'DatabaseFailure';
    this.sqlState = coded.code;
    const stack =
      original instanceof Error ? original.stack?.split('\n').filter((line) => /^ +at /.test(line)) : undefined;
    if (stack) this.stack = [`${this.name}: ${this.message}`, ...stack].join('\n');
  }
}

/** Where a DATABASE_URL points, without user or password: 'db.example:5432/studio'. */
export function describeDatabaseUrl(databaseUrl: string): string {
  try {
    const url = new URL(databaseUrl);
    return `${url.hostname || 'localhost'}:${url.port || '5432'}${url.pathname === '/' ? '' : decodeURI(url.pathname)}`;
  } catch {
    return 'an address that cannot be read';
  }
}

/** A failure to open the server that DATABASE_URL names. */
export function serverOpenError(error: unknown, databaseUrl: string): unknown {
  if (isStudioError(error)) return error;
  const coded = codeOf(error);
  const where = describeDatabaseUrl(databaseUrl);
  const options = { cause: coded?.source };
  const details = { code: coded?.code ?? null };
  switch (coded?.code) {
    case '28P01':
    case '28000':
      return new Invalid(
        `PostgreSQL at ${where} refused the user or password in DATABASE_URL. Correct them.`,
        details,
        options,
      );
    case '3D000':
      return new Invalid(
        `PostgreSQL at ${where} has no such database. Create it, or correct DATABASE_URL.`,
        details,
        options,
      );
    case '42501':
      return new Invalid(
        `The user in DATABASE_URL may not create tables at ${where}. Grant it the right to create in this database.`,
        details,
        options,
      );
  }
  if (
    coded &&
    [...LOST_CONNECTION, ...LOST_CONNECTION_SYSTEM, '57P03', 'EHOSTUNREACH', 'ENETUNREACH'].includes(coded.code)
  )
    return new Unavailable(
      `PostgreSQL at ${where} cannot be reached (${coded.code}). Check that it runs and that DATABASE_URL is right.`,
      details,
      options,
    );
  return toStudioError(error);
}

/** A failure of the file system under the data folder. */
export function folderError(error: unknown, folder: string): StudioError {
  const code = codeOf(error)?.code ?? 'unknown';
  const options = { cause: error };
  const details = { code, folder };
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === '53100')
    return new Unavailable(
      `The disk of the data folder ${folder} is full. Free space, then start again.`,
      details,
      options,
    );
  if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM')
    return new Unavailable(
      `The data folder ${folder} cannot be written (${code}). Give this user the right to write there, or set STUDIO_DATA_DIR to another folder.`,
      details,
      options,
    );
  if (code === 'ENOTDIR' || code === 'EEXIST')
    return new Invalid(
      `The data folder ${folder} is, or lies under, a file. Set STUDIO_DATA_DIR to a folder.`,
      details,
      options,
    );
  return new Unavailable(
    `The data folder ${folder} cannot be used (${code}). Set STUDIO_DATA_DIR to a folder on a local disk.`,
    details,
    options,
  );
}
