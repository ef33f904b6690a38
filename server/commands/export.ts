/** `studio export`: writes a run's token sequences to a file. The file appears under its name only when it is whole. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { Unavailable } from '../core/errors';
import type { StudioClient } from './client';

export async function exportRun(
  client: StudioClient,
  runId: string,
  out: string,
): Promise<{ lines: number; bytes: number }> {
  const partial = `${out}.partial-${process.pid}`;
  const file = createWriteStream(partial, { encoding: 'utf8' });
  const done = finished(file);
  // Awaited below; a failure in between must not be an unhandled one.
  done.catch(() => undefined);
  let lines = 0;
  try {
    for await (const text of client.exportRun(runId)) {
      for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines++;
      if (!file.write(text)) await Promise.race([once(file, 'drain'), done]);
    }
    file.end();
    await done;
    await rename(partial, out);
    return { lines, bytes: file.bytesWritten };
  } catch (error) {
    file.destroy();
    await rm(partial, { force: true });
    if (error instanceof Error && 'code' in error && typeof error.code === 'string' && 'syscall' in error)
      throw new Unavailable(`${out} could not be written: ${error.message}.`, {}, { cause: error });
    throw error;
  }
}
