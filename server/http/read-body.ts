/** Reads a small JSON body, with a bound. */
import type { IncomingMessage } from 'node:http';
import { Invalid } from '../core/errors';

/** Throws Invalid when it is larger than `maxBytes`, not declared as JSON, or not JSON. */
export async function readJsonBody(req: IncomingMessage, maxBytes: number): Promise<unknown> {
  if (!/^application\/json\b/i.test(req.headers['content-type'] ?? ''))
    throw new Invalid('The body must be JSON, with the header Content-Type: application/json.');
  const text = await readBounded(req, maxBytes);
  try {
    return JSON.parse(text);
  } catch {
    throw new Invalid('The body is not JSON.');
  }
}

/** By events, not by iteration: leaving an iteration early destroys the socket before the answer is sent. */
function readBounded(req: IncomingMessage, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      req.off('data', onData);
      req.pause();
      reject(new Invalid(`The body is larger than the ${maxBytes} bytes this address takes.`));
    };
    req.on('data', onData);
    req.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    req.once('error', () => reject(new Invalid('The body ended early.')));
    req.once('close', () => reject(new Invalid('The body ended early.')));
  });
}
