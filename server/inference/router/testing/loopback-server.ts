/** A real HTTP server on loopback that says little and goes wrong on demand; it can be killed and come back on its port. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export class LoopbackServer {
  /** `refuse`: 503 to all but health. `sick`: 503 to all. `hang`: no answer at all. `drop`: the connection is closed. */
  mode: 'well' | 'refuse' | 'sick' | 'hang' | 'drop' = 'well';
  /** Only generations go wrong in the way of `mode`. */
  onlyGenerations = false;
  /** Milliseconds a generation takes. */
  takesMs = 5;
  model = 'tiny';
  context = 4096;
  version = 'v0';
  /** Generations at once; one more is answered with 503. */
  capacity = Number.POSITIVE_INFINITY;
  /** Why an update of weights fails; null lets it through. */
  refusesWeights: string | null = null;
  running = 0;
  mostRunning = 0;
  /** Prompts that came, in order, as their first id. */
  readonly came: number[] = [];
  readonly keys: string[] = [];
  updates: string[] = [];
  starts = 0;
  generated = 0;
  #server: Server | null = null;
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  static async start(changes: Partial<LoopbackServer> = {}): Promise<LoopbackServer> {
    const server = Object.assign(new LoopbackServer(), changes);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const server = createServer((request, response) => {
      void this.#answer(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((ready, fail) => {
      server.once('error', fail);
      server.listen(this.#port, '127.0.0.1', ready);
    });
    this.starts += 1;
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** As a crash looks from outside. */
  async kill(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    this.running = 0;
    if (!server) return;
    const closed = new Promise<void>((settle) => server.close(() => settle()));
    server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    const body = await bodyOf(request);
    const generation = path === '/generate';
    if (!this.onlyGenerations || generation) {
      if (this.mode === 'hang') return;
      if (this.mode === 'drop') return void request.socket.destroy();
      if (this.mode === 'sick' || (this.mode === 'refuse' && path !== '/health'))
        return send(response, 503, { error: { message: 'not now' } });
    }
    if (path === '/health') return send(response, 200, {});
    if (path === '/state') return send(response, 200, this.#state());
    if (path === '/metrics')
      return send(response, 200, `test:running ${this.running}\ntest:generated ${this.generated}\n`);
    if (path === '/weights') {
      if (this.refusesWeights) return send(response, 400, { error: { message: this.refusesWeights } });
      await sleep(this.takesMs);
      this.version = String(body.version);
      this.updates.push(this.version);
      return send(response, 200, {});
    }
    if (!generation) return send(response, 404, {});
    if (this.running >= this.capacity) return send(response, 503, { error: { message: 'the queue is full' } });
    this.came.push(Number((body.ids as number[])[0]));
    this.keys.push(String(body.key));
    if ((body.ids as number[])[0] === -1) return send(response, 400, { error: { message: 'no such id' } });
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    const server = this.#server;
    await sleep(this.takesMs);
    if (server !== this.#server) return;
    this.running -= 1;
    this.generated += 3;
    send(response, 200, { ids: [1, 2, 3], logprobs: [-1, -2, -3], version: this.version });
  }

  #state(): object {
    return { model: this.model, context: this.context, version: this.version, starts: this.starts };
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text ? JSON.parse(text) : {};
}

const sleep = (ms: number) => new Promise((settle) => setTimeout(settle, ms));
