/** A server that gives set replies: for what a real one said once, and for what one should never say. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Json } from '../../core/vocabulary';

export interface Answer {
  status?: number;
  /** A string is sent as text, everything else as JSON. */
  body: Json | string;
}
/** `closed` closes the connection instead. */
export type Handler = Answer | 'closed' | ((body: unknown) => Answer | Promise<Answer>);

export interface CannedServer {
  url: string;
  /** By `METHOD /path?query`; what is not here is 404. Changed by the test as it goes. */
  handlers: Record<string, Handler>;
  /** What came in, in order. */
  asked: { route: string; body: unknown }[];
  close(): Promise<void>;
}

export async function startCannedServer(handlers: Record<string, Handler> = {}): Promise<CannedServer> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const route = `${request.method} ${request.url}`;
    const sent: unknown = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : null;
    canned.asked.push({ route, body: sent });
    const handler = canned.handlers[route] ?? { status: 404, body: { detail: 'Not Found' } };
    if (handler === 'closed') return request.socket.destroy();
    const { status = 200, body } = typeof handler === 'function' ? await handler(sent) : handler;
    const text = typeof body === 'string';
    response.writeHead(status, { 'content-type': text ? 'text/plain' : 'application/json' });
    response.end(text ? body : JSON.stringify(body));
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const canned: CannedServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    handlers,
    asked: [],
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
  return canned;
}

/** The error that a call ends with; a call that does not fail is one. */
export function errorOf(call: Promise<unknown> | undefined): Promise<Error> {
  return Promise.resolve(call).then(
    () => {
      throw new Error('It did not fail.');
    },
    (reason) => reason,
  );
}
