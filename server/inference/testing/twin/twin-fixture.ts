/** What tests of clients on twins need: two tiny models with one vocabulary, a tokenizer folder, and a teacher of each. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemAmbient } from '../../../core/ambient';
import { silentLogger } from '../../../observability/logger';
import { EmbeddedBackend } from '../../embedded/embedded-backend';
import { RemoteBackend, type RemoteOptions } from '../../remote/remote-backend';
import { writeTinyCheckpoint } from '../checkpoint';
import { writeTinyModel } from '../tiny-model';
import type { Twin } from './twin';

export class TwinFixture {
  #folder = '';
  readonly #teachers = new Map<string, Promise<EmbeddedBackend>>();
  readonly #backends: RemoteBackend[] = [];

  async open(): Promise<void> {
    this.#folder = await mkdtemp(join(tmpdir(), 'twins-'));
    await writeTinyModel(this.tiny);
    await writeTinyModel(this.next, { seed: 2 });
    await writeTinyCheckpoint(this.tokenizer);
  }

  get tiny(): string {
    return join(this.#folder, 'tiny.gguf');
  }

  /** Other weights with the same vocabulary. */
  get next(): string {
    return join(this.#folder, 'next.gguf');
  }

  get missing(): string {
    return join(this.#folder, 'not here.gguf');
  }

  /** A folder with the tokenizer's files. */
  get tokenizer(): string {
    return join(this.#folder, 'checkpoint');
  }

  /** The same file in llama.cpp with its own way to a log-probability; opened once. */
  teacher(path: string): Promise<EmbeddedBackend> {
    const held = this.#teachers.get(path);
    if (held) return held;
    const opened = EmbeddedBackend.open({
      name: 'teacher',
      modelPath: path,
      threads: 1,
      maxSequences: 4,
      logger: silentLogger,
    });
    this.#teachers.set(path, opened);
    return opened;
  }

  async backendOn(
    twin: Pick<Twin, 'url'>,
    options: Partial<RemoteOptions> & Pick<RemoteOptions, 'protocol'>,
  ): Promise<RemoteBackend> {
    const backend = await RemoteBackend.open({
      name: 'twin',
      url: twin.url,
      model: null,
      tokenizerFolder: null,
      maxInFlight: 16,
      logger: silentLogger,
      ambient: systemAmbient(),
      ...options,
    });
    this.#backends.push(backend);
    return backend;
  }

  async close(): Promise<void> {
    await Promise.all(this.#backends.map((backend) => backend.close()));
    for (const teacher of this.#teachers.values()) await (await teacher).close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
