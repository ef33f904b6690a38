import { describe, expect, it } from 'vitest';
import { Conflict } from '../../core/errors';
import type { ServiceContext } from '../context';
import { idleProcess } from '../testing/idle-process';
import { recheckWhenServing } from './recheck-when-serving';

describe('the check after a restart', () => {
  it.each(['updating', 'down', 'paused'])('waits while a server is %s', async (state) => {
    const backend = {
      replicas: () => [
        { url: 'http://gpu-1', state: 'healthy' },
        { url: 'http://gpu-2', state },
      ],
    };
    const ctx = { process: idleProcess({ backendLive: async () => backend as never }) } as unknown as ServiceContext;
    const checked = recheckWhenServing(ctx, 'remote', new AbortController().signal, 1);
    await expect(checked).rejects.toBeInstanceOf(Conflict);
    await expect(checked).rejects.toThrow(`http://gpu-2 is ${state}`);
  });
});
