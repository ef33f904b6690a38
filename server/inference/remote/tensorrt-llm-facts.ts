/** What a trtllm-serve server says of itself, and what has to be tried. */
import type { HttpClient } from './http-client';
import { isObject } from './json-body';
import type { ServerFacts } from './protocol';
import { countOrNull, isMounted, modelCards, notServed, objectAt, textOrNull } from './server-probe';

export type TensorrtRoute = 'control';

export interface TensorrtFacts extends ServerFacts {
  readonly routes: ReadonlySet<TensorrtRoute>;
  /** The numbers of sampled tokens are divided by the temperature, as the older of its two engines does. */
  readonly tempered: boolean;
  /** Of the last generation: what a cache that was not emptied would know. */
  lastPrompt: Int32Array | null;
}

/** Every fact that this protocol is given was made by its own `describe`. */
export const tensorrtFacts = (facts: ServerFacts): TensorrtFacts => facts as TensorrtFacts;

/** As many as the server gives. */
const ALTERNATIVES = 20;
/** Equal numbers differ by no more than this on a GPU. */
const SAME = 0.02;

/** Throws Invalid when the models' owner is not TensorRT-LLM, NotFound when the wanted one is not served. */
export async function describeTensorrt(
  http: HttpClient,
  wanted: { model: string | null; contextLength?: number | null },
): Promise<TensorrtFacts> {
  const [card = {}] = await modelCards(http, 'tensorrt_llm', 'trtllm-serve');
  const modelName = String(card.id);
  // The server itself takes any name.
  if (wanted.model !== null && wanted.model !== modelName) throw notServed(http, wanted.model, [modelName]);
  const [version, server, startedAt, control, tempered] = await Promise.all([
    objectAt(http, '/version'),
    objectAt(http, '/server_info'),
    processStart(http),
    isMounted(http, '/update_weights'),
    areTempered(http, modelName),
  ]);
  const contextLength = countOrNull(server?.max_seq_len) ?? wanted.contextLength ?? 0;
  const said = textOrNull(version?.version);
  return {
    modelName,
    contextLength,
    version: said,
    fingerprint: ['tensorrt-llm', said, modelName, contextLength, startedAt].join(' '),
    logprobs: 'raw',
    routes: new Set<TensorrtRoute>(control ? ['control'] : []),
    tempered,
    lastPrompt: null,
  };
}

async function processStart(http: HttpClient): Promise<string> {
  const { body } = await http.text('GET', '/prometheus/metrics', undefined, { accept: [404] });
  return /^process_start_time_seconds (\S+)/m.exec(body)?.[1] ?? '';
}

/** The same position at two temperatures: raw numbers do not move. Where nothing can be told they count as tempered. */
async function areTempered(http: HttpClient, model: string): Promise<boolean> {
  const [warm, hot] = await Promise.all([1, 2].map((temperature) => likeliest(http, model, temperature)));
  const apart = Object.entries(warm ?? {})
    // Tokens that are parts of characters all have this one text.
    .filter(([text]) => !text.includes('\ufffd') && hot?.[text] !== undefined)
    .map(([text, logprob]) => Math.abs(Number(logprob) - Number(hot?.[text])))
    .sort((a, b) => a - b);
  // One may be the same by chance.
  return !((apart[apart.length >> 1] ?? Number.NaN) <= SAME);
}

async function likeliest(http: HttpClient, model: string, temperature: number): Promise<Record<string, unknown>> {
  const request = { model, prompt: [0, 0], max_tokens: 1, temperature, logprobs: ALTERNATIVES, detokenize: false };
  const { status, body } = await http.postJson('/v1/completions', request, { accept: [400] });
  const choice = status < 300 && isObject(body) && Array.isArray(body.choices) ? body.choices[0] : null;
  const logprobs = isObject(choice) && isObject(choice.logprobs) ? choice.logprobs.top_logprobs : null;
  return Array.isArray(logprobs) && isObject(logprobs[0]) ? logprobs[0] : {};
}
