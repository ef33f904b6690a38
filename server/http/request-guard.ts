/** Checks every request passes before anything else looks at it: its address form, its Host, and who sent it here. */
import type { IncomingMessage } from 'node:http';
import { Forbidden, Invalid } from '../core/errors';
import type { Addresses } from './addresses';

const READING_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Path and query of a request; throws Invalid for forms that could be read as another host. */
export function requestUrl(req: IncomingMessage): URL {
  const target = req.url ?? '';
  if (!target.startsWith('/') || target.startsWith('//') || target.includes('\\'))
    throw new Invalid('This address cannot be read. An address starts with one slash.');
  try {
    const url = new URL(target, 'http://studio.invalid');
    decodeURIComponent(url.pathname);
    return url;
  } catch {
    throw new Invalid('This address cannot be read.');
  }
}

/** Throws Forbidden when the request names a host this studio does not answer to. */
export function checkHost(req: IncomingMessage, addresses: Addresses): void {
  if (!addresses.allowsHost(req.headers.host))
    throw new Forbidden(
      `This studio does not answer to the host ${JSON.stringify(req.headers.host ?? '')}. Open ${addresses.publicUrl}, ` +
        'or start it with STUDIO_PUBLIC_URL set to the address people use.',
    );
}

/**
 * Throws Forbidden when a page of another site is behind a request that changes state, or opens a WebSocket.
 * A request with a bearer token is a program's: no browser sends one across sites by itself.
 */
export function checkOrigin(
  req: IncomingMessage,
  addresses: Addresses,
  options: { always: boolean; bearer: boolean },
): void {
  if (!options.always && READING_METHODS.has(req.method ?? '')) return;
  const { origin } = req.headers;
  const site = req.headers['sec-fetch-site'];
  if (origin !== undefined) {
    if (addresses.allowsOrigin(origin)) return;
    throw new Forbidden(`A page of ${JSON.stringify(origin)} may not change anything here.`);
  }
  if (options.bearer) return;
  if (site === 'same-origin' || (site === 'none' && !options.always)) return;
  throw new Forbidden('This request does not say which page sent it. Use the page itself, or a bearer token.', {
    site,
  });
}
