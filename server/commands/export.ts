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
  { out, all }: { out: string; all: boolean },
): Promise<{ lines: number; bytes: number }> {
  const partial = `${out}.partial-${process.pid}`;
  const file = createWriteStream(partial, { encoding: 'utf8' });
  const done = finished(file);
  // Awaited below; a failure in between must not be an unhandled one.
  done.catch(() => undefined);
  let lines = 0;
  try {
    for await (const text of client.exportRun(runId, { all })) {
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

/** Sentences about what is not in the file; none when everything is. */
export async function leftOut(client: StudioClient, runId: string, all: boolean): Promise<string[]> {
  const { approximate, notRaw, withoutSignal, unfinished } = await client.exportCounts(runId);
  const sentences: string[] = [];
  if (!all && approximate > 0)
    sentences.push(`${approximate} approximate token sequences are left out; --all takes them in.`);
  if (!all && notRaw > 0)
    sentences.push(`${notRaw} token sequences whose log-probabilities are not raw are left out; --all takes them in.`);
  if (!all && withoutSignal > 0)
    sentences.push(`${withoutSignal} token sequences of groups without signal are left out; --all takes them in.`);
  if (unfinished > 0) sentences.push(`${unfinished} trajectories have not ended and are not in the file.`);
  return sentences;
}
