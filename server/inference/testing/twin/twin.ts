/** What both twins have in common: their options, and the handle a test holds. */
import type { TwinEngine, TwinError } from './engine';
import { noFaults, type TwinFaults } from './faults';
import { type CountedEngine, openEngine, type TwinCounters, type TwinModel } from './open-engine';
import { type LoggedRequest, type TwinRoute, TwinServer } from './twin-server';

export interface TwinOptions extends TwinModel {
  /** 0: any free one. */
  port?: number;
  faults?: Partial<TwinFaults>;
  /** How often a closed socket is looked for. Default 1000. */
  disconnectPollMs?: number;
  /** Demanded of every request. */
  key?: string | null;
  /** Default true. */
  keepLog?: boolean;
}

export interface Twin {
  readonly url: string;
  /** Set a field while it runs. */
  readonly faults: TwinFaults;
  readonly log: LoggedRequest[];
  readonly engine: TwinEngine;
  counters(): TwinCounters;
  /** As a crash looks from outside. */
  kill(): Promise<void>;
  /** Back on the same port, with the weights it was started with. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** What tells one start of a server from the next. */
export interface ServerStart {
  number: number;
}

export interface TwinProtocol {
  routes(counted: CountedEngine, faults: TwinFaults, start: ServerStart): Record<string, TwinRoute>;
  errorBody(path: string, error: TwinError): unknown;
}

export async function startTwin(options: TwinOptions, protocol: TwinProtocol): Promise<Twin> {
  const faults: TwinFaults = { ...noFaults(), ...options.faults };
  const counted = await openEngine(options, faults);
  const { engine } = counted;
  const start: ServerStart = { number: Math.floor(Math.random() * 2 ** 31) };
  const server = new TwinServer({
    port: options.port ?? 0,
    faults,
    routes: protocol.routes(counted, faults, start),
    errorBody: protocol.errorBody,
    disconnectPollMs: options.disconnectPollMs ?? 1000,
    key: options.key ?? null,
    keepLog: options.keepLog ?? true,
  });
  await server.start();
  return {
    get url() {
      return server.url;
    },
    faults,
    log: server.log,
    engine,
    counters: counted.counters,
    kill: async () => {
      await server.kill();
      engine.scheduler.stop(() => true, 'The server has ended.');
    },
    restart: async () => {
      await engine.reset();
      start.number++;
      await server.start();
    },
    close: async () => {
      await server.kill();
      await engine.close();
    },
  };
}
