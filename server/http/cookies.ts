/** The sign-in cookie: read, written and cleared here alone. */
import type { IncomingMessage } from 'node:http';
import type { Addresses } from './addresses';

/** Cookies are shared by all ports of a host, so two studios on one machine need two names. */
export function cookieName(addresses: Addresses): string {
  const url = new URL(addresses.publicUrl);
  return `studio_sign_in_${url.port || (url.protocol === 'https:' ? '443' : '80')}`;
}

/** The cookie's value, or null. */
export function readCookie(req: IncomingMessage, name: string): string | null {
  for (const part of (req.headers.cookie ?? '').split(';')) {
    const at = part.indexOf('=');
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return null;
}

/** A Set-Cookie value; `maxAgeSeconds` 0 clears it. */
export function signInCookie(addresses: Addresses, secret: string, maxAgeSeconds: number): string {
  const parts = [`${cookieName(addresses)}=${secret}`, 'Path=/', 'HttpOnly', 'SameSite=Strict'];
  parts.push(`Max-Age=${Math.max(0, Math.floor(maxAgeSeconds))}`);
  if (addresses.secure) parts.push('Secure');
  return parts.join('; ');
}
