/** A twin in a process of its own, so that its work is not counted as the client's. */
import { fork } from 'node:child_process';
import { childEntry } from '../../../child-entry';
import type { TwinFaults } from './faults';
import type { TwinCounters } from './open-engine';
import type { SglangTwinOptions } from './sglang';
import type { TensorrtTwinOptions } from './tensorrt';

export type TwinStart =
  | { kind: 'sglang'; options: SglangTwinOptions }
  | { kind: 'tensorrt-llm'; options: TensorrtTwinOptions };

export type TwinCommand =
  | { do: 'start'; start: TwinStart }
  | { do: 'counters' | 'kill' | 'restart' | 'close' }
  | { do: 'faults'; faults: Partial<TwinFaults> };

export type TwinAnswer = { id: number } & ({ value: unknown } | { error: string });

export interface TwinProcess {
  readonly url: string;
  counters(): Promise<TwinCounters>;
  setFaults(faults: Partial<TwinFaults>): Promise<void>;
  kill(): Promise<void>;
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function startTwinProcess(start: TwinStart): Promise<TwinProcess> {
  const { file, execArgv } = childEntry('twin-child', import.meta.url);
  const child = fork(file, [], { execArgv, serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const waiting = new Map<number, { settle: (value: unknown) => void; fail: (error: Error) => void }>();
  let last = 0;
  const ended = new Promise<void>((settle) =>
    child.once('exit', () => {
      for (const { fail } of waiting.values()) fail(new Error('The process of the twin has ended.'));
      settle();
    }),
  );
  child.on('message', (answer: TwinAnswer) => {
    const pending = waiting.get(answer.id);
    waiting.delete(answer.id);
    if ('error' in answer) pending?.fail(new Error(answer.error));
    else pending?.settle(answer.value);
  });
  const ask = (command: TwinCommand) =>
    new Promise<unknown>((settle, fail) => {
      const id = ++last;
      waiting.set(id, { settle, fail });
      child.send({ id, ...command });
    });
  const url = (await ask({ do: 'start', start })) as string;
  return {
    url,
    counters: async () => (await ask({ do: 'counters' })) as TwinCounters,
    setFaults: async (faults) => void (await ask({ do: 'faults', faults })),
    kill: async () => void (await ask({ do: 'kill' })),
    restart: async () => void (await ask({ do: 'restart' })),
    close: async () => {
      await ask({ do: 'close' });
      child.disconnect();
      await ended;
    },
  };
}
