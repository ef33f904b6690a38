/** What every answer says to the browser about what it may do with it. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Addresses } from './addresses';

export function setSecurityHeaders(res: ServerResponse, addresses: Addresses): void {
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('X-Frame-Options', 'DENY');
  res.setHeader('Referrer-Policy', 'no-referrer');
  res.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
  res.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
  res.setHeader('Permissions-Policy', 'camera=(), microphone=(), geolocation=(), payment=(), usb=()');
  if (addresses.secure) res.setHeader('Strict-Transport-Security', 'max-age=31536000');
  // For everything that is no page: nothing may run in it, wherever it is opened.
  res.setHeader('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; sandbox");
}

/**
 * A page's policy: scripts run only with this answer's nonce. Next reads the nonce from the request header, so the
 * policy is written there too. Styles stay open to inline ones: charts and canvases set them as attributes.
 */
export function setPagePolicy(req: IncomingMessage, res: ServerResponse, development: boolean): string {
  const nonce = randomBytes(16).toString('base64');
  const host = req.headers.host ?? '';
  const policy = [
    "default-src 'self'",
    `script-src 'self' 'nonce-${nonce}' 'strict-dynamic'${development ? " 'unsafe-eval'" : ''}`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    // Older browsers do not count a WebSocket to the same host as 'self'.
    `connect-src 'self' ws://${host} wss://${host}`,
    "worker-src 'self' blob:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
  res.setHeader('Content-Security-Policy', policy);
  req.headers['content-security-policy'] = policy;
  return nonce;
}
