/** POST /api/sign-in and POST /api/sign-out. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestContext } from '../routers/trpc';
import type { SignedIn } from '../services/people/actor-of-secret';
import { signIn } from '../services/people/sign-in';
import { signOut } from '../services/people/sign-out';
import type { Addresses } from './addresses';
import { remoteAddress } from './authenticate';
import { signInCookie } from './cookies';
import { createRateLimit } from './rate-limit';
import { readJsonBody } from './read-body';
import { sendJson } from './respond';

const MAX_BODY_BYTES = 4096;

export function createSignInRoutes(options: {
  services: RequestContext['services'];
  addresses: Addresses;
  onSignOut(signInId: string): void;
}) {
  const { services, addresses } = options;
  const attempts = createRateLimit({ burst: 10, perMinute: 10 });
  return {
    async signIn(req: IncomingMessage, res: ServerResponse): Promise<void> {
      const ipAddress = remoteAddress(req);
      if (!attempts.take(ipAddress ?? 'unknown', services.ambient.now())) {
        res.setHeader('Retry-After', '60');
        sendJson(res, 429, { error: { code: 'unavailable', message: 'Too many tries to sign in. Wait a minute.' } });
        return;
      }
      const input = await readJsonBody(req, MAX_BODY_BYTES);
      const { secret, expiresAtMs, viewer } = await signIn({ services, input, ipAddress });
      const maxAgeSeconds = (expiresAtMs - services.ambient.now()) / 1000;
      res.setHeader('Set-Cookie', signInCookie(addresses, secret, maxAgeSeconds));
      sendJson(res, 200, { viewer });
    },
    /** Also for someone whose sign-in is over: the cookie goes either way. */
    async signOut(_req: IncomingMessage, res: ServerResponse, signedIn: SignedIn | null): Promise<void> {
      if (signedIn) {
        await signOut({ ctx: { ...services, actor: signedIn.actor }, input: { signInId: signedIn.signInId } });
        options.onSignOut(signedIn.signInId);
      }
      res.setHeader('Set-Cookie', signInCookie(addresses, '', 0));
      sendJson(res, 200, { ok: true });
    },
  };
}
