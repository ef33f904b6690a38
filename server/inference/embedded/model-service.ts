/** What the model process does with a message: one open model, requests by id, and the change of weights. */
import { getLlama, type Llama, LlamaLogLevel } from 'node-llama-cpp';
import { Cancelled, Conflict, Invalid, Unavailable } from '../../core/errors';
import { type Job, WeightsChanged } from './batch-loop';
import { LoadedModel } from './loaded-model';
import type { Answer, FromChild, ModelInfo, ModelSettings, ToChild } from './protocol';
import { toWireError } from './wire-error';

interface InFlight {
  cancelled: boolean;
  jobs: { model: LoadedModel; job: Job }[];
}

export class ModelService {
  readonly #send: (message: FromChild) => void;
  #llama: Llama | null = null;
  #current: LoadedModel | null = null;
  #updating = false;
  readonly #inFlight = new Map<number, InFlight>();

  constructor(send: (message: FromChild) => void) {
    this.#send = send;
  }

  receive(message: ToChild): void {
    if (message.kind === 'cancel') this.#cancel(message.id);
    else if (message.kind !== 'generate') this.#answer(message.id, (flight) => this.#serve(message, flight));
    else
      for (const task of message.tasks)
        this.#answer(task.id, (flight) => this.#onCurrent(flight, (model, onJob) => model.generate(task, onJob)));
  }

  #answer(id: number, work: (flight: InFlight) => Promise<Answer>): void {
    const flight: InFlight = { cancelled: false, jobs: [] };
    this.#inFlight.set(id, flight);
    work(flight)
      .then((value) => this.#send({ kind: 'result', id, value }))
      .catch((error) => this.#send({ kind: 'error', id, error: toWireError(error) }))
      .finally(() => this.#inFlight.delete(id));
  }

  async #serve(message: Exclude<ToChild, { kind: 'cancel' | 'generate' }>, flight: InFlight): Promise<Answer> {
    switch (message.kind) {
      case 'open':
        return this.#open(message.settings);
      case 'update':
        return this.#update(message.source, message.version);
      case 'score': {
        const { pairs, alternatives, entropy } = message;
        const wanted = { alternatives, entropy };
        return Promise.all(
          pairs.map((pair) => this.#onCurrent(flight, (model, onJob) => model.score(pair, wanted, onJob))),
        );
      }
      case 'tokenize':
        return this.#model().encode(message.text, message.special);
      case 'decode':
        return this.#model().decode(message.ids);
      case 'template':
        return this.#model().render(message.messages, message.options);
      case 'ping':
        this.#model();
        return null;
      case 'close':
        for (const id of this.#inFlight.keys()) if (id !== message.id) this.#cancel(id);
        await this.#current?.dispose();
        await this.#llama?.dispose();
        return null;
    }
  }

  /** Runs a request on the current weights, again when they are replaced before it has begun. */
  async #onCurrent<T>(
    flight: InFlight,
    work: (model: LoadedModel, onJob: (job: Job) => void) => Promise<T>,
  ): Promise<T> {
    for (;;) {
      const model = this.#model();
      try {
        return await work(model, (job) => {
          if (flight.cancelled) throw new Cancelled('The generation was stopped on request.');
          flight.jobs.push({ model, job });
        });
      } catch (error) {
        if (!(error instanceof WeightsChanged)) throw error;
      }
    }
  }

  #cancel(id: number): void {
    const flight = this.#inFlight.get(id);
    if (!flight) return;
    flight.cancelled = true;
    for (const { model, job } of flight.jobs) model.cancel(job);
  }

  async #open(settings: ModelSettings): Promise<ModelInfo> {
    this.#llama = await getLlama({
      gpu: false,
      build: 'never',
      maxThreads: settings.threads,
      logLevel: LlamaLogLevel.warn,
      // llama.cpp warns about many things that are fine (a vocabulary without this or that token).
      logger: (level, message) =>
        this.#send({
          kind: 'log',
          level: level === LlamaLogLevel.error || level === LlamaLogLevel.fatal ? 'warn' : 'debug',
          message: message.trim(),
        }),
    }).catch((error) => {
      throw new Unavailable('llama.cpp has no ready-made build for this machine; use a backend on a server instead.', {
        cause: String(error),
      });
    });
    this.#current = await LoadedModel.load(this.#llama, settings);
    return this.#current.info;
  }

  /** The old weights serve until the new ones are ready; what has begun ends on the weights it began with. */
  async #update(source: string, version: string): Promise<ModelInfo> {
    const old = this.#model();
    if (!this.#llama) throw new Unavailable('No model is open.');
    if (this.#updating) throw new Conflict('The weights are being changed already; wait for that to end.');
    this.#updating = true;
    try {
      // The same limits as before, so that no request that was fine becomes too long.
      const { contextLength, maxSequences } = old.info;
      const next = await LoadedModel.load(this.#llama, {
        ...old.settings,
        contextLength,
        maxSequences,
        modelPath: source,
        version,
      });
      if (next.vocabulary.fingerprint !== old.vocabulary.fingerprint) {
        await next.dispose();
        throw new Invalid(
          `The vocabulary of ${source} differs from that of the model being served, so token ids would change their meaning; the old weights stay.`,
        );
      }
      this.#current = next;
      old
        .dispose()
        .catch((error) =>
          this.#send({ kind: 'log', level: 'warn', message: `The old weights were not freed: ${error}` }),
        );
      return next.info;
    } finally {
      this.#updating = false;
    }
  }

  #model(): LoadedModel {
    if (!this.#current) throw new Unavailable('No model is open.');
    return this.#current;
  }
}
