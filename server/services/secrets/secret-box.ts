/** Seals short secrets (keys of inference servers) with AES-256-GCM, so that the database never holds one in clear. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { Unavailable } from '../../core/errors';

const LAYOUT = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;

export class SecretBox {
  readonly #key: Uint8Array;

  /** @param key 32 bytes */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** @param boundTo what the secret belongs to; it opens only with the same words, so that rows cannot be exchanged */
  seal(secret: string, boundTo: string): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(boundTo));
    const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
    return new Uint8Array(Buffer.concat([Buffer.of(LAYOUT), nonce, cipher.getAuthTag(), sealed]));
  }

  /** Throws Unavailable when it was sealed with another key, for something else, or is damaged; the message has no subject. */
  open(sealed: Uint8Array, boundTo: string): string {
    if (sealed[0] !== LAYOUT || sealed.length < HEAD_BYTES) throw new Unavailable(OTHER_KEY);
    const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
    const tag = sealed.subarray(1 + NONCE_BYTES, HEAD_BYTES);
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(boundTo)).setAuthTag(tag);
      return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()]).toString('utf8');
    } catch {
      // What the library says of a wrong tag helps nobody, and must not carry anything of the secret along.
      throw new Unavailable(OTHER_KEY);
    }
  }

  toJSON(): string {
    return 'SecretBox';
  }
}

export const OTHER_KEY =
  'it was stored under another secret key. Start the studio with the STUDIO_SECRET_KEY (or the file secret.key) it was stored under, or store the key again';
