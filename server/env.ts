/** The one schema of the environment. Parsed once, at a process's start; the rest of the code receives values. */
import { resolve } from 'node:path';
import { z } from 'zod';
import { Invalid } from './core/errors';

/** A whole number, told in words for whoever set the variable. */
const whole = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d+$/, `it must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `it must be a whole number from ${least} to ${most}`);

/**
 * A password with `#`, `/` or `?` in it that was not percent-encoded moves into the address's other parts, where messages
 * would show it; one that cannot be decoded ends the driver.
 */
function isCleanDatabaseUrl(text: string): boolean {
  try {
    const url = new URL(text);
    for (const part of [url.username, url.password, url.pathname]) decodeURIComponent(part);
    return url.hash === '' && !`${url.pathname}${url.search}`.includes('@');
  } catch {
    return false;
  }
}

/** 32 bytes from base64 (either alphabet, with or without padding) or from 64 hexadecimal digits; null when it is neither. */
function secretKeyOf(text: string): Uint8Array | null {
  if (/^[0-9a-f]{64}$/i.test(text)) return new Uint8Array(Buffer.from(text, 'hex'));
  return /^[\w+/-]{43}=?$/.test(text) ? new Uint8Array(Buffer.from(text, 'base64')) : null;
}

const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/** Empty strings count as absent. Each entry's description is its documentation. */
export const environmentSchema = z.object({
  STUDIO_DATA_DIR: z
    .string()
    .default('.data')
    .describe('Folder of the embedded database and of everything else the studio keeps.'),
  HOST: z.string().default('127.0.0.1').describe('Address the studio listens on.'),
  PORT: whole(0, 65535).default(3000).describe('Port the studio listens on; 0 takes a free one.'),
  DATABASE_URL: z
    .url({
      protocol: /^postgres(ql)?$/,
      error: 'it must be an address like postgres://user:password@host:5432/database',
    })
    .refine(isCleanDatabaseUrl, 'signs such as @ / ? # % in its user or password must be percent-encoded (%23 for #)')
    .optional()
    .describe('PostgreSQL 15 or newer, postgres://…; without it the embedded database in STUDIO_DATA_DIR is used.'),
  STUDIO_PUBLIC_URL: z
    .url({ protocol: /^https?$/, error: 'it must be an address like https://studio.example' })
    .optional()
    .describe('Address people use, when it is not http://HOST:PORT (behind a proxy).'),
  STUDIO_SECRET_KEY: z
    .string()
    .refine((text) => secretKeyOf(text) !== null, 'it must be 32 bytes, in base64 or as 64 hexadecimal digits')
    .optional()
    .describe('Encrypts stored keys of inference servers; without it secret.key in STUDIO_DATA_DIR is made.'),
  STUDIO_LOG_LEVEL: z
    .enum(LOG_LEVELS, { error: `it must be one of ${LOG_LEVELS.join(', ')}` })
    .default('warn')
    .describe('How much is logged to standard error.'),
  STUDIO_SANDBOXES: whole(1, 256).default(16).describe('Most sandboxes alive at once, for each level and language.'),
  STUDIO_TRAJECTORIES_AT_ONCE: whole(1, 4096).default(64).describe('Trajectories one worker holds at a time.'),
  STUDIO_MODEL_THREADS: whole(1, 256).default(1).describe('Threads of the embedded model.'),
});

export interface Environment {
  dataDir: string;
  host: string;
  port: number;
  databaseUrl: string | null;
  publicUrl: string | null;
  /** Null: the one in the data folder. */
  secretKey: Uint8Array | null;
  logLevel: z.infer<typeof environmentSchema>['STUDIO_LOG_LEVEL'];
  sandboxes: number;
  trajectoriesAtOnce: number;
  modelThreads: number;
  /** The text of PATH, for finding a Python; the system's variable, not one of the studio's. */
  searchPath: string;
}

/** Throws Invalid with one sentence that names the variable, what it holds (never for a URL, which may carry a password, nor for a key) and what is right. */
export function parseEnvironment(source: Record<string, string | undefined>): Environment {
  const given = Object.fromEntries(
    Object.entries(source).filter(([name, value]) => name in environmentSchema.shape && value !== ''),
  );
  const parsed = environmentSchema.safeParse(given);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const name = String(issue?.path[0]);
    const shown = /(URL|KEY)$/.test(name) ? '' : ` is ${JSON.stringify(given[name])} and`;
    const about = environmentSchema.shape[name as keyof typeof environmentSchema.shape]?.description ?? '';
    throw new Invalid(`The environment variable ${name}${shown} cannot be used: ${issue?.message}. ${about}`);
  }
  const e = parsed.data;
  return {
    dataDir: resolve(e.STUDIO_DATA_DIR),
    host: e.HOST,
    port: e.PORT,
    databaseUrl: e.DATABASE_URL ?? null,
    publicUrl: e.STUDIO_PUBLIC_URL ?? null,
    secretKey: e.STUDIO_SECRET_KEY === undefined ? null : secretKeyOf(e.STUDIO_SECRET_KEY),
    logLevel: e.STUDIO_LOG_LEVEL,
    sandboxes: e.STUDIO_SANDBOXES,
    trajectoriesAtOnce: e.STUDIO_TRAJECTORIES_AT_ONCE,
    modelThreads: e.STUDIO_MODEL_THREADS,
    searchPath: source.PATH ?? '',
  };
}
