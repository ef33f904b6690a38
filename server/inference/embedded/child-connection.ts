/** The line to one forked model process: requests by id, cancellation, and what happens when the process ends. */
import { type ChildProcess, fork } from 'node:child_process';
import { childEntry } from '../../child-entry';
import { Cancelled, Unavailable } from '../../core/errors';
import type { Logger } from '../../observability/logger';
import type { Answer, Answers, FromChild, GenerateTask, ToChild } from './protocol';
import { fromWireError } from './wire-error';

/** A message to the child without its id, which the connection gives. */
type Question = Exclude<ToChild, { kind: 'generate' | 'cancel' }>;
type Asked<Kind extends Question['kind']> = Omit<Extract<Question, { kind: Kind }>, 'id' | 'kind'>;

interface Pending {
  settle: (value: Answer) => void;
  fail: (error: Error) => void;
  stopListening: () => void;
}

const STDERR_KEPT = 4000;

export class ChildConnection {
  readonly #process: ChildProcess;
  readonly #name: string;
  readonly #logger: Logger;
  readonly #pending = new Map<number, Pending>();
  readonly ended: Promise<void>;
  #nextId = 1;
  #stderr = '';
  #alive = true;

  constructor(name: string, logger: Logger) {
    this.#name = name;
    this.#logger = logger;
    const { file, execArgv } = childEntry('llama-child', import.meta.url);
    this.#process = fork(file, [], { execArgv, serialization: 'advanced', stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    this.#process.stderr?.on('data', (data: Buffer) => {
      this.#stderr = (this.#stderr + data.toString()).slice(-STDERR_KEPT);
    });
    this.#process.on('message', (message: FromChild) => this.#receive(message));
    this.ended = new Promise((settle) => {
      // Not 'close': with an IPC channel Node does not always emit that.
      this.#process.once('exit', (code, signal) => {
        this.#end(signal ?? `exit code ${code}`);
        settle();
      });
      this.#process.once('error', (error) => {
        this.#end(error.message);
        settle();
      });
    });
  }

  get alive(): boolean {
    return this.#alive && this.#process.connected;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  ask<Kind extends Question['kind']>(kind: Kind, question: Asked<Kind>, signal?: AbortSignal): Promise<Answers[Kind]> {
    const [id, answer] = this.#expect(signal);
    this.#send({ kind, id, ...question } as unknown as ToChild, [id]);
    return answer as Promise<Answers[Kind]>;
  }

  /** Several generations in one message; each answer settles on its own. */
  generate(tasks: (Omit<GenerateTask, 'id'> & { signal?: AbortSignal })[]): Promise<Answers['generate']>[] {
    const expected = tasks.map((task) => this.#expect(task.signal));
    const withIds = tasks.flatMap(({ promptIds, options, affinityKey, signal }, k) => {
      const id = expected[k]?.[0];
      return id === undefined || signal?.aborted ? [] : [{ id, promptIds, options, affinityKey }];
    });
    if (withIds.length)
      this.#send(
        { kind: 'generate', tasks: withIds },
        withIds.map((task) => task.id),
      );
    return expected.map(([, answer]) => answer as Promise<Answers['generate']>);
  }

  /** Asks the process to end what it holds, and ends it when it does not within `graceMs`. */
  async close(graceMs = 5000): Promise<void> {
    if (!this.#alive) return;
    const late = setTimeout(() => this.#process.kill('SIGKILL'), graceMs);
    await this.ask('close', {}).catch(() => {});
    if (this.#process.connected) this.#process.disconnect();
    await this.ended;
    clearTimeout(late);
  }

  /** Ends the process at once; what it was asked fails with Unavailable. */
  kill(): void {
    this.#process.kill('SIGKILL');
  }

  #expect(signal?: AbortSignal): [id: number, answer: Promise<Answer>] {
    const id = this.#nextId++;
    const answer = new Promise<Answer>((settle, fail) => {
      const abort = () => {
        // Answered here at once; the child frees the sequence after the batch in progress.
        this.#take(id)?.fail(new Cancelled('The generation was stopped on request.'));
        this.#send({ kind: 'cancel', id }, []);
      };
      if (signal?.aborted) return fail(new Cancelled('The generation was stopped on request.'));
      signal?.addEventListener('abort', abort, { once: true });
      this.#pending.set(id, { settle, fail, stopListening: () => signal?.removeEventListener('abort', abort) });
    });
    return [id, answer];
  }

  #send(message: ToChild, ids: number[]): void {
    const failed = () => {
      for (const id of ids) this.#take(id)?.fail(this.#gone());
    };
    if (!this.alive) {
      failed();
      return;
    }
    this.#process.send(message, (error) => {
      if (error) failed();
    });
  }

  #receive(message: FromChild): void {
    if (message.kind === 'log') {
      this.#logger[message.level]({ backend: this.#name }, message.message);
    } else if (message.kind === 'result') {
      this.#take(message.id)?.settle(message.value);
    } else {
      this.#take(message.id)?.fail(fromWireError(message.error));
    }
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.stopListening();
    return pending;
  }

  #end(how: string): void {
    if (!this.#alive) return;
    this.#alive = false;
    if (this.#pending.size)
      this.#logger.warn(
        { backend: this.#name, how, stderr: this.#stderr },
        'The model process ended while it was working.',
      );
    for (const id of [...this.#pending.keys()]) this.#take(id)?.fail(this.#gone(how));
  }

  #gone(how?: string): Unavailable {
    return new Unavailable(
      `The model process of the backend ${this.#name} ended while it was working; the next request starts a new one.`,
      {
        how,
        stderr: this.#stderr,
      },
    );
  }
}
