/**
 * Asks a server what it can do, by trying: every item of the checklist sends something small and looks at what comes back.
 * Nothing on the server is changed. What it can do is what was seen, not what its kind usually can.
 */
import type { Ambient } from '../../core/ambient';
import { Invalid, isStudioError, Unavailable } from '../../core/errors';
import {
  type BackendCapabilities,
  type BackendCheck,
  CHECK_ITEMS,
  type CheckItem,
  type ConstraintKind,
  type RemoteKind,
} from '../../core/inference';
import type { LogprobKind } from '../../core/vocabulary';
import type { Logger } from '../../observability/logger';
import { checkConstraints } from './check-constraints';
import { findKind, PRODUCTS } from './check-kind';
import { checkLogprobKind, checkScoring } from './check-logprobs';
import { PERHAPS_PAUSED, type Probe, textOf, type Verdict } from './check-probe';
import { Recorder } from './check-recorder';
import { checkEmbeddings, checkMetrics, checkWeights } from './check-routes';
import { checkRoundTrip, checkTemplate, checkTokenizer } from './check-tokens';
import { describeServer } from './describe-server';
import { createHttpClient, type HttpClient } from './http-client';
import { LocalTokenizer } from './local-tokenizer';
import type { ServerFacts, ServerProtocol, WeightRoutes } from './protocol';
import { where } from './server-name';
import { ended } from './server-words';
import type { TokenText } from './token-text';

export interface ServerCheckOptions {
  url: string;
  key: string | null;
  /** What the protocols sign with, so that nothing shown holds it. */
  controlKey?: string | null;
  /** What a person says it is; null: found out. */
  kind: RemoteKind | null;
  /** Name the server knows its model by; null takes the one it serves. */
  model: string | null;
  /** Folder with the model's tokenizer files, or null. */
  tokenizerFolder: string | null;
  /** In tokens, for servers that do not tell. */
  contextLength: number | null;
  /** Null where the server belongs to none yet. */
  backendName: string | null;
  logger: Logger;
  ambient: Ambient;
  protocols: Readonly<Record<RemoteKind, ServerProtocol>>;
  signal?: AbortSignal;
}

/** Worth having in flight where a server does not say how many it works on. */
const IN_FLIGHT = 64;
const PROMPT = 'Count: one, two, three,';

/** What the items found out beside their status. */
interface Found {
  seeded: boolean;
  logprobs: LogprobKind;
  canScore: boolean;
  entropy: boolean;
  constraints: ConstraintKind[];
  weights: WeightRoutes | null;
  embeddings: boolean;
}

/**
 * Throws Invalid when the address or key can be none, or the caller's reason when it stops the check. A server that is
 * bad, away or something else throws nothing: the items say it.
 */
export async function checkServer(options: ServerCheckOptions): Promise<BackendCheck> {
  const { backendName: backend, url, key, controlKey } = options;
  const http = createHttpClient({ backend, url, key, controlKey, connections: 64 });
  try {
    return await new Checklist(options, http).run();
  } finally {
    await http.close();
  }
}

class Checklist {
  readonly #options: ServerCheckOptions;
  readonly #http: HttpClient;
  readonly #server: string;
  readonly #items: CheckItem[] = [];

  constructor(options: ServerCheckOptions, http: HttpClient) {
    this.#options = options;
    this.#http = http;
    this.#server = where(http);
  }

  async run(): Promise<BackendCheck> {
    const kind = await this.#kind();
    const facts = kind && (await this.#facts(this.#options.protocols[kind]));
    const found = kind && facts ? await this.#tried(this.#options.protocols[kind], facts) : null;
    const ok = found !== null && this.#items.every(({ status }) => status !== 'fail');
    return {
      url: this.#http.url,
      kind,
      serverVersion: facts?.version ?? null,
      ok,
      items: this.#items.sort((a, b) => CHECK_ITEMS.indexOf(a.id) - CHECK_ITEMS.indexOf(b.id)),
      capabilities: ok && kind && facts ? this.#capabilities(kind, facts, found) : null,
      fingerprint: facts?.fingerprint ?? null,
      checkedAtMs: this.#options.ambient.now(),
    };
  }

  /** Reaches the server and finds out which it is; null when that is nothing known. */
  async #kind(): Promise<RemoteKind | null> {
    const { kind: declared } = this.#options;
    let kind: RemoteKind | null = null;
    const recorder = await this.#item('reach', async (http) => {
      kind = await findKind(http);
      return { status: 'pass', says: `${this.#server} answers.` };
    });
    if (this.#failed('reach')) return null;
    const found = kind as RemoteKind | null;
    await this.#item('kind', async () => verdictOnKind(this.#server, found, declared), recorder);
    return this.#failed('kind') ? found : (declared ?? found);
  }

  /** What the server says of itself; null when that is not enough. */
  async #facts(protocol: ServerProtocol): Promise<ServerFacts | null> {
    if (this.#failed('kind')) return null;
    const { model, contextLength } = this.#options;
    let facts: ServerFacts | null = null;
    const recorder = await this.#item('model', async (http) => {
      facts = await describeServer(protocol, http, { model, contextLength });
      return { status: 'pass', says: `It serves ${facts.modelName}.`, about: facts.modelName };
    });
    const known = facts as ServerFacts | null;
    if (!known) return null;
    await this.#item('context_length', async () => verdictOnContext(known, contextLength), recorder);
    return known;
  }

  /** Everything that makes the server work. */
  async #tried(protocol: ServerProtocol, facts: ServerFacts): Promise<Found | null> {
    const { tokenizerFolder, ambient, signal } = this.#options;
    let localTokenizer: LocalTokenizer | null = null;
    let text: TokenText | null = null;
    let promptIds: Int32Array = Int32Array.of(10, 11, 12);
    const probeOf = (http: Recorder): Probe => ({
      http,
      protocol,
      facts,
      localTokenizer,
      text,
      server: this.#server,
      promptIds,
      ambient,
      signal,
    });
    const found: Found = {
      seeded: false,
      logprobs: 'unknown',
      canScore: false,
      entropy: false,
      constraints: [],
      weights: null,
      embeddings: false,
    };
    await this.#item('tokenizer', async (http) => {
      if (tokenizerFolder !== null) localTokenizer = await LocalTokenizer.open(tokenizerFolder);
      const opened = textOf(probeOf(http));
      const verdict = await checkTokenizer(probeOf(http), opened);
      text = opened;
      return verdict;
    });
    await this.#item('chat_template', async (http) => {
      const { rendered, ...verdict } = await checkTemplate(probeOf(http), PROMPT);
      // From here on it is asked as a run asks it.
      if (text) promptIds = (await text.encode(rendered, { special: true })).ids;
      return verdict;
    });
    await this.#item('token_round_trip', async (http) => {
      const routes = protocol.weights(facts);
      if (await routes?.paused?.(http))
        throw new Unavailable(`${this.#server} stands paused: it takes requests and answers none until it is resumed.`);
      const hint = routes?.canPause && !routes.paused ? PERHAPS_PAUSED : '';
      const { seeded, ...verdict } = await checkRoundTrip(probeOf(http), hint);
      found.seeded = seeded;
      return verdict;
    });
    // A server that gives no tokens would only say the same again.
    if (this.#failed('token_round_trip')) return null;
    await this.#item('logprob_kind', async (http) => {
      const { kind, ...verdict } = await checkLogprobKind(probeOf(http));
      found.logprobs = kind;
      return verdict;
    });
    await this.#item('scoring', async (http) => {
      const { canScore, entropy, ...verdict } = await checkScoring(probeOf(http));
      Object.assign(found, { canScore, entropy });
      return verdict;
    });
    await this.#item('constraints', async (http) => {
      const { kinds, ...verdict } = await checkConstraints(probeOf(http));
      found.constraints = kinds;
      return verdict;
    });
    await this.#item('weight_updates', async (http) => {
      const { routes, ...verdict } = await checkWeights(probeOf(http));
      found.weights = routes;
      return verdict;
    });
    await this.#item('metrics', (http) => checkMetrics(probeOf(http), this.#options.ambient.now()));
    await this.#item('embeddings', async (http) => {
      const { embeddings, ...verdict } = await checkEmbeddings(probeOf(http));
      found.embeddings = embeddings;
      return verdict;
    });
    return found;
  }

  #capabilities(kind: RemoteKind, facts: ServerFacts, found: Found): BackendCapabilities {
    const { weights, ...seen } = found;
    return {
      ...seen,
      tokenIds: kind !== 'openai',
      weightSources: [...(weights?.sources ?? [])],
      canPause: weights?.canPause ?? false,
      contextLength: facts.contextLength,
      modelName: facts.modelName,
      batchSize: 1,
      maxInFlight: facts.slots ?? IN_FLIGHT,
    };
  }

  #failed(id: CheckItem['id']): boolean {
    return this.#items.some((item) => item.id === id && item.status === 'fail');
  }

  /** Does the work of one item and puts it on the list. @param recorder of an item before, when its exchange says this too */
  async #item(
    id: CheckItem['id'],
    work: (http: Recorder) => Promise<Verdict>,
    recorder = new Recorder(this.#http),
  ): Promise<Recorder> {
    const { signal, logger } = this.#options;
    let verdict: Verdict;
    try {
      signal?.throwIfAborted();
      verdict = await work(recorder);
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (!isStudioError(error))
        logger.warn({ err: error, item: id, url: this.#http.url }, 'A check met the unexpected.');
      const says = error instanceof Error ? error.message : String(error);
      verdict = { status: 'fail', says: isStudioError(error) ? says : `Its answer could not be read: ${says}` };
      if (isStudioError(error) && error.code === 'forbidden')
        verdict.says = `${ended(says)} Give its key with --key-env NAME, NAME being the environment variable that holds the key, or in the field on the page.`;
    }
    const { about, status, says } = verdict;
    this.#items.push({ id, status, ...recorder.shown(about), says: this.#http.redaction.clean(says) });
    return recorder;
  }
}

function verdictOnKind(server: string, found: RemoteKind | null, declared: RemoteKind | null): Verdict {
  if (found === null && declared === null)
    throw new Invalid(
      `${server} answers, but is none of the servers that are known here (vLLM, SGLang, TensorRT-LLM, llama-server, chat completions). Correct the address; a path in it counts.`,
    );
  if (declared === null || found === declared)
    return { status: 'pass', says: `It is ${PRODUCTS[(found ?? declared) as RemoteKind]}.` };
  if (found === null || found === 'openai')
    return {
      status: 'warn',
      says: `It does not say that it is ${PRODUCTS[declared]}; it is taken at your word.`,
    };
  if (declared === 'openai')
    return {
      status: 'warn',
      says: `It is ${PRODUCTS[found]}, used for its chat completions only. Add it as ${PRODUCTS[found]} to have exact tokens.`,
    };
  throw new Invalid(`It is ${PRODUCTS[found]} and not ${PRODUCTS[declared]}. Add it as ${PRODUCTS[found]}.`);
}

function verdictOnContext({ contextLength }: ServerFacts, said: number | null): Verdict {
  if (!(contextLength > 0))
    throw new Invalid(
      'It does not say how long its context is. Give the length in tokens with which it was started: --context-length N, or the field on the page.',
    );
  const by =
    said === contextLength
      ? 'as you say'
      : `as it says itself${said === null ? '' : `; the ${said} that you gave are not used`}`;
  return { status: 'pass', says: `Its context holds ${contextLength} tokens, ${by}.`, about: String(contextLength) };
}
