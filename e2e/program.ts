/** The running studio as a program of this user reaches it: for what a journey needs beforehand or checks afterwards. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTRPCClient, httpLink } from '@trpc/client';
import { transformer } from '../server/core/transformer';
import type { AppRouter } from '../server/routers/app-router';

export type Program = ReturnType<typeof createTRPCClient<AppRouter>>;

export async function program(dataDir: string): Promise<Program> {
  const { url, token } = JSON.parse(await readFile(join(dataDir, 'server.json'), 'utf8')) as {
    url: string;
    token: string;
  };
  const headers = { authorization: `Bearer ${token}` };
  return createTRPCClient<AppRouter>({
    links: [httpLink({ url: `${url}/api/trpc`, transformer, headers })],
  });
}
