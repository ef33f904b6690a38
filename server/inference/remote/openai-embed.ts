/** `POST /v1/embeddings` as OpenAI has it. */
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { ServerFacts } from './protocol';
import { broken } from './server-probe';

/** Vectors in the order of the texts. Throws Invalid when one is missing. */
export async function embed(
  http: HttpClient,
  facts: ServerFacts,
  texts: string[],
  signal?: AbortSignal,
): Promise<Float32Array[]> {
  const fields = { model: facts.modelName, input: texts, encoding_format: 'float' };
  const { body } = await http.postJson('/v1/embeddings', fields, signal ? { signal } : {});
  const data: unknown[] = isObject(body) && Array.isArray(body.data) ? body.data : [];
  const vectors = new Map<number, Float32Array>();
  for (const one of data.filter(isObject))
    if (Array.isArray(one.embedding)) vectors.set(Number(one.index), Float32Array.from(one.embedding));
  return texts.map((_, index) => {
    const vector = vectors.get(index);
    if (!vector) throw broken(http, '/v1/embeddings', `it holds no vector for text ${index}`);
    return vector;
  });
}
