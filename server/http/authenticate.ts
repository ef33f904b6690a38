/** Who sent a request: by the cookie of a browser or the bearer token of a program. */
import type { IncomingMessage } from 'node:http';
import type { RequestContext } from '../routers/trpc';
import { actorOfSecret, type SignedIn } from '../services/people/actor-of-secret';
import type { Addresses } from './addresses';
import { cookieName, readCookie } from './cookies';

/** Null when nobody is signed in. A bearer token that is wrong is nobody, too: the cookie is not tried after it. */
export async function authenticate(
  req: IncomingMessage,
  services: RequestContext['services'],
  addresses: Addresses,
): Promise<SignedIn | null> {
  const bearer = bearerToken(req);
  const secret = bearer ?? readCookie(req, cookieName(addresses));
  if (secret === null) return null;
  const kind = bearer === null ? 'browser' : 'program';
  return actorOfSecret({ services, secret, kind, ipAddress: remoteAddress(req) });
}

/** The token of an Authorization header; null when there is none of the form `Bearer …`. */
export function bearerToken(req: IncomingMessage): string | null {
  return /^Bearer +([^ ]+)$/i.exec(req.headers.authorization ?? '')?.[1] ?? null;
}

/** The socket's address: headers of proxies are anybody's to write. */
export function remoteAddress(req: IncomingMessage): string | null {
  return req.socket.remoteAddress ?? null;
}
