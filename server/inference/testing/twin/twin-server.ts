/** The HTTP half of every twin: listens, keeps a log, meets faults of the connection, dies and comes back on its port. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { TwinError } from './engine';
import type { TwinFaults } from './faults';

export interface TwinRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  raw: Buffer;
  /** Parsed JSON; null when there is none. */
  body: unknown;
  /** Aborts when the client has gone and the server has noticed. */
  signal: AbortSignal;
}

export type TwinReply =
  | { status?: number; json: unknown }
  | { status?: number; text: string; type?: string }
  /** Server-sent events: pieces of text are `data:` lines; `[DONE]` is one of them. */
  | { events: (send: (data: string) => void) => Promise<void> };

export type TwinRoute = (request: TwinRequest) => Promise<TwinReply> | TwinReply;

export interface LoggedRequest {
  method: string;
  path: string;
  body: unknown;
  headers: IncomingMessage['headers'];
  /** Null while unanswered, −1 when the connection was closed without an answer. */
  status: number | null;
}

export interface TwinServerOptions {
  port: number;
  faults: TwinFaults;
  /** By method and path, e.g. `POST /generate`. */
  routes: Record<string, TwinRoute>;
  /** The body of an error as this server writes it on this path. */
  errorBody: (path: string, error: TwinError) => unknown;
  /** A closed socket is noticed by looking this often. */
  disconnectPollMs: number;
  /** Demanded as `Authorization: Bearer …`; null = no key. */
  key: string | null;
  /** Bodies are kept in the log; off for benches. */
  keepLog: boolean;
}

const PAGE = '<!doctype html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>';

export class TwinServer {
  readonly log: LoggedRequest[] = [];
  readonly #options: TwinServerOptions;
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;
  #port: number;

  constructor(options: TwinServerOptions) {
    this.#options = options;
    this.#port = options.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens, on the same port as before when it had one. */
  async start(): Promise<void> {
    if (this.#server) return;
    const server = createServer((request, response) => void this.#serve(request, response));
    // A client keeps its connections; a twin that closed them first would look like a fault that nobody switched on.
    server.keepAliveTimeout = 0;
    server.requestTimeout = 0;
    server.on('connection', (socket) => {
      socket.setNoDelay(true);
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((settle, fail) => {
      server.once('error', fail);
      server.listen({ port: this.#port, host: '127.0.0.1', backlog: 2048 }, settle);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** As a crash looks from outside: every connection ends, new ones are refused. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = null;
    const closed = new Promise((settle) => server.close(settle));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(message.url ?? '/', 'http://twin');
    const logged: LoggedRequest = {
      method: message.method ?? 'GET',
      path: url.pathname,
      body: null,
      headers: message.headers,
      status: null,
    };
    if (this.#options.keepLog) this.log.push(logged);
    response.once('close', () => {
      logged.status = response.headersSent ? response.statusCode : -1;
    });
    const gone = this.#watch(message, response);
    try {
      const raw = await bodyOf(message);
      if (this.#fails(url.pathname, response)) return;
      const route = this.#routeOf(logged.method, url.pathname);
      this.#authorise(message);
      const body = raw.length > 0 ? parse(raw) : null;
      if (this.#options.keepLog) logged.body = body;
      const reply = await route({
        method: logged.method,
        path: url.pathname,
        query: url.searchParams,
        headers: message.headers,
        raw,
        body,
        signal: gone.signal,
      });
      await this.#answer(url.pathname, response, reply);
    } catch (error) {
      this.#refuse(url.pathname, response, error);
    } finally {
      gone.stop();
    }
  }

  /** True when a fault of the connection has dealt with the request. */
  #fails(path: string, response: ServerResponse): boolean {
    const { faults } = this.#options;
    if (faults.routes && !faults.routes.includes(path)) return false;
    if (faults.hang) return true;
    if (faults.drop) {
      response.socket?.destroy();
      return true;
    }
    if (faults.unavailableNext > 0) {
      faults.unavailableNext--;
      throw new TwinError(503, 'The request queue is full.', 'ServiceUnavailableError');
    }
    if (faults.html) {
      response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
      return true;
    }
    return false;
  }

  #routeOf(method: string, path: string): TwinRoute {
    const { routes } = this.#options;
    const route = routes[`${method} ${path}`];
    if (route) return route;
    const other = Object.keys(routes).some((name) => name.endsWith(` ${path}`));
    throw other ? new TwinError(405, 'Method Not Allowed', 'detail') : new TwinError(404, 'Not Found', 'detail');
  }

  #authorise(message: IncomingMessage): void {
    const { key } = this.#options;
    if (key !== null && message.headers.authorization !== `Bearer ${key}`)
      throw new TwinError(401, 'Unauthorized', 'AuthenticationError');
  }

  async #answer(path: string, response: ServerResponse, reply: TwinReply): Promise<void> {
    if (response.destroyed) return;
    if ('events' in reply) {
      const { faults } = this.#options;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let sent = 0;
      const send = (data: string) => {
        if (response.destroyed) return;
        if (faults.cutStream && sent > 0) response.socket?.end();
        else response.write(`data: ${data}\n\n`);
        sent++;
      };
      await reply.events(send);
      response.end();
      return;
    }
    const text = 'text' in reply ? reply.text : JSON.stringify(reply.json);
    const type = 'text' in reply ? (reply.type ?? 'text/plain') : 'application/json';
    this.#send(path, response, reply.status ?? 200, type, text);
  }

  #send(path: string, response: ServerResponse, status: number, type: string, text: string): void {
    const { faults } = this.#options;
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) });
    if (!faults.cutBody || (faults.routes && !faults.routes.includes(path))) response.end(text);
    else response.write(text.slice(0, text.length >> 1), () => response.socket?.destroy());
  }

  #refuse(path: string, response: ServerResponse, error: unknown): void {
    if (response.destroyed) return;
    if (response.headersSent) {
      response.socket?.destroy();
      return;
    }
    const refusal = error instanceof TwinError ? error : new TwinError(500, String(error), 'InternalServerError');
    const { message, status, type } = refusal;
    const shapes: Record<TwinFaults['errorShape'], () => unknown> = {
      // What the web framework refuses by itself has its own shape.
      own: () => (type === 'detail' ? { detail: message } : this.#options.errorBody(path, refusal)),
      nested: () => ({ error: { message, type, param: null, code: status } }),
      flat: () => ({ object: 'error', message, type, param: null, code: status }),
      string: () => ({ error: message }),
      detail: () => ({ detail: message }),
    };
    const body = JSON.stringify(shapes[this.#options.faults.errorShape]());
    this.#send(path, response, status, 'application/json', body);
  }

  /** The servers look at the socket from time to time. */
  #watch(message: IncomingMessage, response: ServerResponse): { signal: AbortSignal; stop(): void } {
    const gone = new AbortController();
    let timer: NodeJS.Timeout | null = null;
    message.socket.once('close', onClose);
    const { disconnectPollMs } = this.#options;
    function onClose() {
      if (!response.writableFinished) timer = setTimeout(() => gone.abort(), Math.random() * disconnectPollMs);
    }
    return {
      signal: gone.signal,
      stop: () => {
        message.socket.removeListener('close', onClose);
        if (timer) clearTimeout(timer);
      },
    };
  }
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of message) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

function parse(raw: Buffer): unknown {
  try {
    return JSON.parse(raw.toString());
  } catch {
    throw new TwinError(400, 'The body is not valid JSON.');
  }
}
