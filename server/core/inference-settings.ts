/** What is stored of a backend on servers: addresses, what was said when it was added, and the check that came with it. No key. */
import { z } from 'zod';
import {
  type BackendCheck,
  CHECK_ITEMS,
  CONSTRAINT_KINDS,
  REMOTE_KINDS,
  type RemoteKind,
  WEIGHT_SOURCES,
} from './inference';
import { LOGPROB_KINDS } from './vocabulary';

/** Servers of one backend at most. */
export const MAX_REPLICAS = 256;

/**
 * Without user name and password (a key is stored on its own, encrypted), and without a slash at its end. The `/v1` of the
 * addresses that clients of chat services are given is left out: it is part of the routes.
 */
export const serverUrlSchema = z
  .string()
  .trim()
  .min(1)
  .max(2048)
  .refine(isServerUrl, 'it must be http://HOST:PORT or https://HOST, without user name, password, query or fragment')
  .transform((url) => url.replace(/\/+$/, '').replace(/\/v1$/, ''));

const capabilitiesSchema = z.object({
  tokenIds: z.boolean(),
  logprobs: z.enum(LOGPROB_KINDS),
  canScore: z.boolean(),
  entropy: z.boolean(),
  constraints: z.array(z.enum(CONSTRAINT_KINDS)),
  weightSources: z.array(z.enum(WEIGHT_SOURCES)),
  canPause: z.boolean(),
  seeded: z.boolean(),
  embeddings: z.boolean(),
  contextLength: z.int().positive(),
  modelName: z.string(),
  batchSize: z.int().positive(),
  maxInFlight: z.int().positive(),
});

const checkItemSchema = z.object({
  id: z.enum(CHECK_ITEMS),
  status: z.enum(['pass', 'fail', 'warn', 'absent']),
  sent: z.string().nullable(),
  received: z.string().nullable(),
  says: z.string(),
});

const remoteKindSchema = z.enum(REMOTE_KINDS as readonly [RemoteKind, ...RemoteKind[]]);

export const backendCheckSchema: z.ZodType<BackendCheck> = z.object({
  url: z.string(),
  kind: remoteKindSchema.nullable(),
  serverVersion: z.string().nullable(),
  ok: z.boolean(),
  items: z.array(checkItemSchema),
  capabilities: capabilitiesSchema.nullable(),
  fingerprint: z.string().nullable(),
  checkedAtMs: z.number(),
});

export const remoteSettingsSchema = z.object({
  /** Each address once. */
  replicas: z
    .array(z.object({ url: serverUrlSchema }))
    .min(1)
    .max(MAX_REPLICAS)
    .refine(
      (replicas) => new Set(replicas.map(({ url }) => url)).size === replicas.length,
      'each address may stand there once',
    ),
  /** The name under which the servers serve the model; absent: the only one they have. */
  model: z.string().min(1).max(512).optional(),
  /** Folder with the model's tokenizer, for servers without routes for text. */
  tokenizer: z.string().min(1).max(4096).optional(),
  /** In tokens, for servers that do not tell. */
  contextLength: z.int().positive().max(100_000_000).optional(),
  /** Requests in flight with each server. */
  maxInFlight: z.int().positive().max(65_536).optional(),
  /** Tokens (prompt and those to sample) in flight with each server. */
  tokensInFlight: z.int().positive().optional(),
  check: backendCheckSchema.optional(),
});
export type RemoteSettings = z.infer<typeof remoteSettingsSchema>;

function isServerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, search, hash } = new URL(text);
  const plain = !username && !password && !search && !hash;
  return (protocol === 'http:' || protocol === 'https:') && hostname !== '' && plain;
}
