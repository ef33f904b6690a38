/** What callers may send to the verbs of people. */
import { z } from 'zod';
import { idSchema } from '../inputs';

export const makeOneTimeTokenInput = z.object({
  /** For whom; the caller when absent. */
  userId: idSchema('person').optional(),
});
/** base64url of 32 bytes; anything else is refused before the database is asked. */
export const secretSchema = z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'is not a sign-in token');
export const signInInput = z.object({ token: secretSchema });
