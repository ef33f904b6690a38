/**
 * New weights on llama-server: it has no route for them, but adapters that it was started with can be turned on and off.
 * It goes on using prompts that it cached under other adapters, so the cache is emptied by force and looked at afterwards.
 */
import { randomBytes } from 'node:crypto';
import { Invalid } from '../../core/errors';
import type { WeightUpdate } from '../backend';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import { listOf, ofModel } from './llama-server-wire';
import type { ServerFacts, WeightRoutes } from './protocol';
import { where } from './server-name';

/** Bytes of the random texts that push cached prompts out; as hexadecimal digits they are at least as many tokens. */
const PROBE_BYTES = 64;
/** Rounds over the slots: another client may take one meanwhile. */
const ROUNDS = 4;

interface Adapter {
  id: number;
  path: string;
}

export async function adaptersOf(http: HttpClient, facts: Pick<ServerFacts, 'modelName'>): Promise<Adapter[]> {
  // Old servers have no such route.
  const { body } = await http.getJson(ofModel('/lora-adapters', facts), { accept: [404, 501] });
  return listOf(body).map(({ id, path }) => ({ id: Number(id), path: String(path) }));
}

export function loraWeights(facts: ServerFacts): WeightRoutes | null {
  if (!facts.routes.has('lora')) return null;
  return {
    sources: ['lora'],
    canPause: false,
    keepsLabel: false,
    version: async () => facts.modelName,
    pause: async () => {},
    resume: async () => {},
    stamp: async () => {},
    load: async (http, source) => {
      const chosen = choose(await adaptersOf(http, facts), source, http);
      // Before anything changes: weights whose cache cannot be emptied must not be taken.
      await emptyCache(http, facts);
      const adapters = await adaptersOf(http, facts);
      const scales = adapters.map(({ id }) => ({ id, scale: id === chosen.id ? 1 : 0 }));
      await http.postJson(ofModel('/lora-adapters', facts), scales);
    },
    flush: (http) => emptyCache(http, facts),
  };
}

function choose(adapters: Adapter[], source: WeightUpdate['source'], http: HttpClient): Adapter {
  const path = source.kind === 'external' ? '' : source.path;
  const exact = adapters.filter((adapter) => adapter.path === path);
  const named = exact.length > 0 ? exact : adapters.filter((adapter) => fileName(adapter.path) === fileName(path));
  if (named.length === 1 && named[0]) return named[0];
  throw new Invalid(
    `${where(http)} can only apply adapters that it was started with (--lora), and ${path} is ${named.length === 0 ? 'none of them' : 'the name of several'}: ${adapters.map((adapter) => adapter.path).join(', ')}.`,
  );
}

function fileName(path: string): string {
  return path.split(/[/\\]/).at(-1) ?? path;
}

/**
 * Fills every slot with a new text, so that no older prompt is in any, then asks for a text that was in one: if it is
 * still found, the server keeps prompts beside its slots, where nothing empties them.
 */
async function emptyCache(http: HttpClient, facts: ServerFacts): Promise<void> {
  const known = randomText();
  await cachedTokens(http, facts, known);
  const filled = new Set<number>();
  const slots = facts.slots ?? 1;
  for (let k = 0; k < slots * ROUNDS && filled.size < slots; k++)
    filled.add((await cachedTokens(http, facts, randomText())).slot);
  const { cached } = await cachedTokens(http, facts, known);
  if (filled.size < slots)
    throw new Invalid(
      `${where(http)} did not let its prefix cache be emptied: ${filled.size} of its ${slots} slots were free. Use the adapters when nobody else uses the server.`,
    );
  if (cached > PROBE_BYTES / 2)
    throw new Invalid(
      `${where(http)} keeps prompts of the old weights in memory, where nothing empties them, and would go on using them. Start it with --cache-ram 0 to change adapters.`,
    );
}

async function cachedTokens(
  http: HttpClient,
  facts: ServerFacts,
  prompt: string,
): Promise<{ slot: number; cached: number }> {
  const fields = { model: facts.modelName, prompt, n_predict: 1, cache_prompt: true, n_cache_reuse: 0 };
  const { body } = await http.postJson('/completion', fields);
  const { id_slot: slot, timings } = isObject(body) ? body : {};
  const cached = isObject(timings) ? Number(timings.cache_n) : Number.NaN;
  if (!Number.isInteger(slot) || !Number.isInteger(cached))
    throw new Invalid(
      `${where(http)} does not say how much of a prompt it found in its prefix cache, so new weights cannot be made sure of; a newer llama-server is needed.`,
    );
  return { slot: Number(slot), cached };
}

function randomText(): string {
  return randomBytes(PROBE_BYTES).toString('hex');
}
