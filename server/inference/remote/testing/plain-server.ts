/**
 * A small inference server on loopback and the protocol it speaks, for tests of what is the same for all servers. A token
 * is a byte (id = byte), 256 ends a turn. It writes the script behind the prompt's `|`, and waits there where it is told to.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Invalid } from '../../../core/errors';
import type { LogprobKind } from '../../../core/vocabulary';
import { silentLogger } from '../../../observability/logger';
import type { WeightUpdate } from '../../backend';
import { StopStrings } from '../../stop-strings';
import type { HttpClient } from '../http-client';
import type { GenerateCall, RawGeneration, RawScores, ServerFacts, ServerProtocol, WeightRoutes } from '../protocol';
import { RemoteBackend, type RemoteOptions } from '../remote-backend';
import { where } from '../server-name';

export const END = 256;
/** The prompt ends at it. */
export const BAR = 0x7c;

export interface Reply {
  ids: number[];
  logprobs: (number | null)[];
  kind: LogprobKind;
  finish: RawGeneration['finish'];
  endTokenSampled: boolean;
  stopString: string | null;
  promptTokens: number | null;
  versions: RawGeneration['weightVersions'];
}

/** Of the weights `v1`: −id/1000. */
export const scoreOf = (id: number, version: string): number => -id / 1000 - (version === 'v1' ? 0 : 1);

export class PlainServer {
  url = '';
  /** What it writes behind the prompt; depends on the weights that are in. */
  script: (version: string) => string = () => 'one two three';
  /** It waits when so many tokens stand behind the prompt, until this is null or it is interrupted. */
  holdAt: number | null = null;
  /** Scores wait until this is false or they are interrupted. */
  holdsScores = false;
  contextLength = 64;
  startedAs = 'first start';
  /** The weights in memory, and the label that was stamped. */
  loaded = 'v1';
  label = 'v1';
  paused = false;
  says: 'spans' | 'label' | 'nothing' = 'nothing';
  honoursStops = true;
  /** Of its replies; a score is raw always, and another one with each of the weights. */
  logprobKind: LogprobKind = 'raw';
  /** Changes a reply before it is sent. */
  change: (reply: Reply) => unknown = (reply) => reply;
  /** Answers a route in its own way, when it returns true. */
  instead: (path: string, response: ServerResponse) => boolean = () => false;
  readonly asked: { path: string; body: Record<string, unknown> }[] = [];
  readonly #running = new Set<{ stop: boolean }>();
  #server: Server | null = null;

  /** The same port again when it was closed before. */
  async listen(): Promise<this> {
    const port = this.url ? Number(new URL(this.url).port) : 0;
    const server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((ready) => server.listen(port, '127.0.0.1', ready));
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return this;
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    for (const one of this.#running) one.stop = true;
    this.paused = false;
    server?.closeAllConnections();
    await new Promise((closed) => (server ? server.close(closed) : closed(null)));
  }

  /** Resolves when a route was asked so often. */
  async reached(path: string, times = 1): Promise<void> {
    while (this.paths().filter((asked) => asked === path).length < times) await sleep(2);
  }

  paths(): string[] {
    return this.asked.map(({ path }) => path);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request) text += chunk;
    const path = request.url ?? '';
    const body = text === '' ? {} : JSON.parse(text);
    this.asked.push({ path, body });
    if (this.instead(path, response)) return;
    const answer = await this.#route(path, body, response);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answer ?? {}));
  }

  async #route(path: string, body: Record<string, unknown>, response: ServerResponse): Promise<unknown> {
    switch (path) {
      case '/about':
        return { contextLength: this.contextLength, startedAs: this.startedAs };
      case '/version':
        return { version: this.label };
      case '/pause':
        this.paused = true;
        for (const one of this.#running) one.stop ||= body.mode === 'interrupt';
        while (this.#running.size > 0) await sleep(2);
        return {};
      case '/is_paused':
        return { paused: this.paused };
      case '/resume':
        this.paused = false;
        return {};
      case '/load':
        if (body.path === '/broken') {
          response.statusCode = 400;
          return { error: { message: 'no weights in /broken' } };
        }
        this.loaded = String(body.version);
        return {};
      case '/stamp':
        this.label = String(body.version);
        return {};
      case '/score':
        return this.#score(body.completion as number[]);
      case '/generate':
        return this.change(await this.#generate(body as never));
      default:
        return {};
    }
  }

  /** Null when it is interrupted; waits while it is paused. */
  async #score(ids: number[]): Promise<{ logprobs: number[] | null }> {
    while (this.paused) await sleep(2);
    const run = { stop: false };
    this.#running.add(run);
    while (this.holdsScores && !run.stop) await sleep(2);
    this.#running.delete(run);
    return { logprobs: run.stop ? null : ids.map((id) => scoreOf(id, this.loaded)) };
  }

  async #generate(body: { ids: number[]; maxTokens: number; stop: string[] }): Promise<Reply> {
    while (this.paused) await sleep(2);
    const run = { stop: false };
    this.#running.add(run);
    const stops = new StopStrings(this.honoursStops ? body.stop : []);
    const written = body.ids.length - body.ids.indexOf(BAR) - 1;
    const ids: number[] = [];
    const spans: { version: string; start: number; end: number }[] = [];
    let finish: Reply['finish'] | null = null;
    let stopString: string | null = null;
    while (finish === null) {
      while (this.holdAt === written + ids.length && !run.stop) await sleep(2);
      if (run.stop) {
        finish = 'aborted';
        this.holdAt = null;
      } else {
        const bytes = new TextEncoder().encode(this.script(this.loaded));
        const id = bytes[written + ids.length] ?? END;
        ids.push(id);
        const last = spans.at(-1);
        if (last?.version === this.loaded) last.end = ids.length;
        else spans.push({ version: this.loaded, start: ids.length - 1, end: ids.length });
        stopString = stops.push(Uint8Array.of(id));
        if (id === END) finish = 'eos';
        else if (stopString !== null) finish = 'stop';
        else if (ids.length >= body.maxTokens) finish = 'length';
      }
    }
    this.#running.delete(run);
    return {
      ids,
      logprobs: ids.map(() => -0.5),
      kind: this.logprobKind,
      finish,
      endTokenSampled: finish === 'eos',
      stopString,
      promptTokens: body.ids.length,
      versions: this.says === 'spans' ? spans : this.says === 'label' ? this.label : null,
    };
  }
}

export interface PlainProtocolOptions {
  weights?: Partial<Pick<WeightRoutes, 'sources' | 'canPause' | 'keepsLabel'>> | null;
  /** It tells whether it stands paused. */
  saysPaused?: boolean;
  scores?: boolean;
}

/** Ids travel as bodies of JSON; nothing here is like any real server. */
export function plainProtocol({
  weights = null,
  scores = true,
  saysPaused = false,
}: PlainProtocolOptions = {}): ServerProtocol {
  const routes: WeightRoutes = {
    sources: ['checkpoint', 'external'],
    canPause: true,
    ...weights,
    async version(http) {
      return ((await http.getJson('/version')).body as { version: string }).version;
    },
    async pause(http, mode, signal) {
      await http.postJson('/pause', { mode }, { timeoutMs: null, ...(signal && { signal }) });
    },
    async resume(http) {
      await http.postJson('/resume', {});
    },
    ...(saysPaused && {
      async paused(http: HttpClient) {
        return ((await http.getJson('/is_paused')).body as { paused: boolean }).paused;
      },
    }),
    async load(http, source: WeightUpdate['source'], version) {
      if (source.kind !== 'external') await http.postJson('/load', { path: source.path, version }, { once: true });
    },
    async flush(http) {
      await http.postJson('/flush', {});
    },
    async stamp(http, version) {
      await http.postJson('/stamp', { version });
    },
  };
  return {
    kind: 'vllm',
    plainTokenize: true,
    metrics: null,
    async describe(http): Promise<ServerFacts> {
      const about = (await http.getJson('/about')).body as { contextLength?: number; startedAs?: string } | null;
      if (!about?.contextLength) throw new Invalid(`${where(http)} is no plain server.`);
      return {
        modelName: 'plain',
        contextLength: about.contextLength,
        version: '1',
        fingerprint: String(about.startedAs),
        logprobs: 'raw',
        routes: new Set(),
      };
    },
    async generate(http, _facts, { promptIds, options, signal }: GenerateCall): Promise<RawGeneration> {
      const { maxTokens, stop, seed, constraint } = options;
      const call = { ids: promptIds, maxTokens, stop, seed, constraint };
      const answer = await http.postJson('/generate', call, { timeoutMs: null, ...(signal && { signal }) });
      const reply = answer.body as Reply;
      return {
        ids: Int32Array.from(reply.ids),
        logprobs: Float32Array.from(reply.logprobs, (value) => value ?? Number.NaN),
        logprobKind: reply.kind,
        finish: reply.finish,
        endTokenSampled: reply.endTokenSampled,
        stopString: reply.stopString,
        promptTokens: reply.promptTokens,
        weightVersions: reply.versions,
        tokenBytes: reply.ids.map((id) => (id === END ? new TextEncoder().encode('<end>') : Uint8Array.of(id))),
      };
    },
    ...(scores &&
      ({
        async score(
          http: HttpClient,
          _facts: ServerFacts,
          { promptIds, completionIds, signal },
        ): Promise<RawScores | null> {
          const call = { prompt: promptIds, completion: completionIds };
          const { body } = await http.postJson('/score', call, { timeoutMs: null, ...(signal && { signal }) });
          const { logprobs } = body as { logprobs: number[] | null };
          return logprobs && { logprobs: Float32Array.from(logprobs), alternatives: null, entropy: null };
        },
      } satisfies Pick<ServerProtocol, 'score'>)),
    async tokenize(_http, _facts, text) {
      return Int32Array.from(new TextEncoder().encode(text));
    },
    async detokenize(_http, _facts, ids) {
      return new TextDecoder().decode(Uint8Array.from(ids));
    },
    async applyTemplate(_http, _facts, messages) {
      return `${messages.map(({ content }) => content).join('\n')}|`;
    },
    async health(http) {
      await http.getJson('/health');
      return { ok: true, message: 'Ready.' };
    },
    weights: () => (weights === null ? null : routes),
  };
}

/** A server that has been asked nothing yet, and the backend that is open on it. */
export async function openPlain(
  protocol: PlainProtocolOptions,
  options: Partial<RemoteOptions> & Pick<RemoteOptions, 'ambient'>,
): Promise<{ server: PlainServer; backend: RemoteBackend }> {
  const server = await new PlainServer().listen();
  const backend = await RemoteBackend.open({
    name: 'plain',
    url: server.url,
    protocol: plainProtocol(protocol),
    model: null,
    tokenizerFolder: null,
    maxInFlight: 8,
    logger: silentLogger,
    ...options,
  });
  server.asked.length = 0;
  return { server, backend };
}
