/** The lines of a file of any size, one in memory at a time. */
import { createReadStream } from 'node:fs';
import { Invalid, NotFound, Unavailable } from '../core/errors';

const LINE_FEED = 0x0a;
/** What fits into one text of the engine. */
const MAX_LINE_BYTES = 500_000_000;

/**
 * Splits at line feeds only: U+2028 and a lone carriage return are text in JSON Lines. Lines come without their end.
 * Throws NotFound when there is no such file, Invalid (with the line) where bytes are not UTF-8, Unavailable when reading fails.
 */
export async function* readLines(path: string, maxLineBytes = MAX_LINE_BYTES): AsyncGenerator<string> {
  let line = 1;
  let open: Buffer[] = [];
  let openBytes = 0;
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (bytes: Uint8Array): string => {
    try {
      return decoder.decode(bytes);
    } catch {
      throw new Invalid(`Line ${line} of ${path} is not UTF-8 text.`, { path, line });
    }
  };
  for await (const chunk of chunksOf(path)) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      const last = chunk.subarray(start, end);
      yield decode(open.length === 0 ? last : Buffer.concat([...open, last]));
      line++;
      open = [];
      openBytes = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    open.push(chunk.subarray(start));
    openBytes += chunk.length - start;
    if (openBytes > maxLineBytes)
      throw new Invalid(`Line ${line} of ${path} is longer than ${maxLineBytes} bytes.`, { path, line });
  }
  if (open.length > 0) yield decode(Buffer.concat(open));
}

async function* chunksOf(path: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>;
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === 'ENOENT') throw new NotFound(`There is no file ${path}.`, { path }, { cause });
    throw new Unavailable(`The file ${path} could not be read: ${(cause as Error).message}.`, { path }, { cause });
  }
}
