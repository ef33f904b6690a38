/** Which of the known servers listens at an address. */
import { isStudioError } from '../../core/errors';
import type { RemoteKind } from '../../core/inference';
import type { HttpClient } from './http-client';
import { isObject } from './json-body';

export const PRODUCTS: Record<RemoteKind, string> = {
  vllm: 'vLLM',
  sglang: 'SGLang',
  'tensorrt-llm': 'TensorRT-LLM',
  'llama-server': 'llama-server (llama.cpp)',
  openai: 'a service of chat completions',
};

/** Their own words for who owns the models they list. */
const OWNERS = new Map<string, RemoteKind>(
  Object.entries({
    vllm: 'vllm',
    sglang: 'sglang',
    tensorrt_llm: 'tensorrt-llm',
    llamacpp: 'llama-server',
  }),
);

/** Routes that only one of them has, for when the list of models is not there or a proxy has rewritten it. */
const OWN_ROUTES: [path: string, field: string, RemoteKind][] = [
  ['/props', 'default_generation_settings', 'llama-server'],
  ['/get_model_info', 'model_path', 'sglang'],
  ['/model_info', 'model_path', 'sglang'],
];

/**
 * Null when something answers and is none of them. Throws from the error family when nothing answers, the key is not
 * taken, or it is a web page.
 */
export async function findKind(http: HttpClient): Promise<RemoteKind | null> {
  const { status, body } = await http.getJson('/v1/models', { accept: [404, 405], timeoutMs: 10_000 });
  const cards: unknown[] = status < 300 && isObject(body) && Array.isArray(body.data) ? body.data : [];
  const owner = isObject(cards[0]) ? cards[0].owned_by : undefined;
  const known = typeof owner === 'string' ? OWNERS.get(owner) : undefined;
  if (known) return known;
  const own = await Promise.all(
    OWN_ROUTES.map(async ([path, field, kind]) => ((await hasField(http, path, field)) ? kind : null)),
  );
  // A list of models that somebody else owns: a gateway, or a service in the cloud.
  return own.find((kind) => kind !== null) ?? (cards.length > 0 ? 'openai' : null);
}

async function hasField(http: HttpClient, path: string, field: string): Promise<boolean> {
  try {
    const { status, body } = await http.getJson(path, { accept: [404, 405, 501], timeoutMs: 10_000 });
    return status < 300 && isObject(body) && field in body;
  } catch (error) {
    if (isStudioError(error)) return false;
    throw error;
  }
}
