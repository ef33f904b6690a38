/**
 * Puts a person who may only look into the database of a data folder that no studio uses, and prints a token for one
 * sign-in: `tsx e2e/add-viewer.ts DATA_DIR`. There is no page for this yet.
 */

import { openDatabase } from '../db/open';
import { insertSignIn, insertUser } from '../db/queries/sign-ins';
import { systemAmbient } from '../server/core/ambient';
import { createLogger } from '../server/observability/logger';
import { hashSecret, newSecret } from '../server/services/people/secrets';

const [dataDir = ''] = process.argv.slice(2);
const database = await openDatabase({ dataDir, logger: createLogger('silent') });
const { newId, now } = systemAmbient();
const userId = newId('usr');
const token = newSecret();
await insertUser(database.db, { id: userId, name: 'onlooker', role: 'viewer', createdAtMs: now() });
await insertSignIn(database.db, {
  id: newId('sgn'),
  userId,
  kind: 'one_time',
  secretHash: hashSecret(token),
  createdAtMs: now(),
  expiresAtMs: now() + 3_600_000,
});
await database.close();
process.stdout.write(`${token}\n`);
