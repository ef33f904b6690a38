/**
 * Next as the part that draws pages. It gets a bare emitter in place of the real server: given the server, it adds an
 * upgrade listener of its own and ends every WebSocket that is not its.
 */
import { EventEmitter } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import next from 'next';

export interface Pages {
  draw(req: IncomingMessage, res: ServerResponse): Promise<void>;
  /** True when Next took the upgrade (hot reload in development). */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): boolean;
  close(): Promise<void>;
}

/** Loads the build, or the compiler in development. Rejects when the build is missing. */
export async function openPages(options: {
  folder: string;
  development: boolean;
  hostname: string;
  port: number;
}): Promise<Pages> {
  const upgrades = new EventEmitter();
  const { folder: dir, development: dev, hostname, port } = options;
  const app = next({ dir, dev, hostname, port, httpServer: upgrades as unknown as Server });
  await app.prepare();
  const handle = app.getRequestHandler();
  return {
    draw: (req, res) => handle(req, res),
    upgrade: (req, socket, head) => dev && upgrades.emit('upgrade', req, socket, head),
    close: () => app.close(),
  };
}
