/** What a server says of itself, held against what can be kept and shown: it may say anything. */
import { createHash } from 'node:crypto';
import { Invalid } from '../../core/errors';
import type { HttpClient } from './http-client';
import type { ServerFacts, ServerProtocol } from './protocol';
import { where } from './server-name';
import { fitName, plain } from './server-words';

const VERSION_CHARS = 100;
const FINGERPRINT_CHARS = 512;

/** Throws from the error family when it does not answer, is another kind, or says what no server is. */
export async function describeServer(
  protocol: ServerProtocol,
  http: HttpClient,
  wanted: { model: string | null; contextLength: number | null },
): Promise<ServerFacts> {
  const facts = await protocol.describe(http, wanted);
  const { modelName, contextLength, version, fingerprint } = facts;
  fitName(where(http), 'model', modelName);
  if (!Number.isSafeInteger(contextLength))
    throw new Invalid(
      `${where(http)} says that its context holds ${contextLength} tokens, which is no number of them.`,
    );
  // Protocols keep notes of their own in the same object.
  return Object.assign(facts, {
    version: version && plain(version.slice(0, VERSION_CHARS)),
    fingerprint:
      fingerprint.length > FINGERPRINT_CHARS ? createHash('sha256').update(fingerprint).digest('hex') : fingerprint,
  });
}
