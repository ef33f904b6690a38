/** Secrets of sign-ins: 256 random bits, shown once, kept as a hash. */
import { createHash, randomBytes } from 'node:crypto';

/** 43 characters of base64url. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** SHA-256 in hex. A slow hash would add nothing: the secret has 256 bits, it cannot be guessed. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret, 'utf8').digest('hex');
}
