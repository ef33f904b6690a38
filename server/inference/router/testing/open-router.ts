/** A router over loopback servers with times that suit a test, and what tests ask of it. */
import { afterEach } from 'vitest';
import { systemAmbient } from '../../../core/ambient';
import { silentLogger } from '../../../observability/logger';
import type { GenerationRequest, GenerationResult } from '../../backend';
import { PLAIN } from '../../testing/conformance';
import { ReplicaRouter, type RouterOptions } from '../router';
import { loopbackSource } from './loopback-backend';
import { LoopbackServer } from './loopback-server';

/** Patient where only a busy machine would be late. */
export const QUICK = { lookMs: 30, answerMs: 10_000, hungMs: 150, firstPauseMs: 20, longestPauseMs: 60 };

const toClose: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close();
});

export async function startServers(count: number, changes: Partial<LoopbackServer> = {}): Promise<LoopbackServer[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => LoopbackServer.start(changes)));
  for (const server of servers) toClose.push(() => server.kill());
  return servers;
}

/** Open on all of them unless `ready` is false. */
export async function openRouter(
  servers: readonly LoopbackServer[],
  { ready = true, ...changes }: Partial<RouterOptions> & { ready?: boolean } = {},
): Promise<ReplicaRouter> {
  const router = new ReplicaRouter({
    name: 'loop',
    replicas: servers.map((server) => loopbackSource(server.url)),
    ambient: systemAmbient(),
    logger: silentLogger,
    times: QUICK,
    retryPauseMs: 10,
    ...changes,
  });
  toClose.push(() => router.close());
  if (ready) await until(() => router.replicas().every((replica) => replica.state === 'healthy'));
  return router;
}

export function ask(
  key: string,
  changes: Partial<GenerationRequest> & { id?: number; maxTokens?: number } = {},
): GenerationRequest {
  const { id = 7, maxTokens = 3, ...rest } = changes;
  return { promptIds: Int32Array.of(id, 8), options: { ...PLAIN, maxTokens }, affinityKey: key, ...rest };
}

/** The result, or the error thrown. */
export async function generate(router: ReplicaRouter, request: GenerationRequest): Promise<GenerationResult> {
  const [settled] = await router.generate([request]);
  if (settled?.status !== 'fulfilled') throw settled?.reason;
  return settled.value;
}

export async function until(reached: () => boolean): Promise<void> {
  while (!reached()) await new Promise((next) => setTimeout(next, 5));
}

export const pause = (ms: number) => new Promise((next) => setTimeout(next, ms));
