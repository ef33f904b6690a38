/** Takes the port, with a sentence for each way that can fail. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Conflict, Forbidden, Invalid } from '../core/errors';

/** The real port: 0 takes a free one. */
export function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, host, port)));
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port));
  });
}

function explain(error: NodeJS.ErrnoException, host: string, port: number): unknown {
  const options = { cause: error };
  if (error.code === 'EADDRINUSE')
    return new Conflict(
      `Port ${port} of ${host} is in use by another program. Stop it, or start with another port; PORT=0 takes a free one.`,
      {},
      options,
    );
  if (error.code === 'EACCES')
    return new Forbidden(`This user may not listen on port ${port}. Take one above 1023: PORT=3000.`, {}, options);
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN')
    return new Invalid(`This machine has no address ${host}. Correct HOST; 127.0.0.1 always works.`, {}, options);
  return error;
}
