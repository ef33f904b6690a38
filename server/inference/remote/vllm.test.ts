/** The vLLM protocol on replies that a vLLM 0.32.0 gave on 29 November 2026, shortened, and on ways in which they can be wrong. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemAmbient } from '../../core/ambient';
import { Invalid, NotFound, Unavailable } from '../../core/errors';
import type { Json } from '../../core/vocabulary';
import { silentLogger } from '../../observability/logger';
import type { Constraint, SamplingOptions } from '../backend';
import { type Answer, type CannedServer, errorOf, type Handler, startCannedServer } from '../testing/canned-server';
import { checkServer } from './check';
import { createHttpClient, type HttpClient } from './http-client';
import type { GenerateCall } from './protocol';
import { PROTOCOLS } from './protocols';
import { RemoteBackend } from './remote-backend';
import { vllm } from './vllm';
import { type VllmFacts, type VllmRoute, vllmFacts } from './vllm-facts';

const METRICS = `# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.79597381488e+09
vllm:num_requests_running{engine="0",model_name="tiny"} 0.0
`;
const card = (id: string, changes: object = {}) => ({
  id,
  object: 'model',
  created: 1795973882,
  owned_by: 'vllm',
  root: 'tiny',
  parent: null,
  max_model_len: 1024,
  ...changes,
});
const MODELS = { object: 'list', data: [card('tiny')] };
const NOT_FOUND = { status: 404, body: { detail: 'Not Found' } };
const NOT_ALLOWED = { status: 405, body: { detail: 'Method Not Allowed' } };
const MODE = (mode: string) => ({
  body: {
    vllm_config: {
      model_config: { logprobs_mode: mode, max_logprobs: 20 },
      device_config: { device: 'cpu' },
      lora_config: { max_lora_rank: 16 },
    },
  },
});
const DEVELOPMENT: Record<string, Handler> = {
  'GET /v1/models': { body: MODELS },
  'GET /version': { body: { version: '0.32.0' } },
  'GET /weight_info': { body: { weight_version: 'default' } },
  'GET /server_info?config_format=json': MODE('raw_logprobs'),
  'GET /metrics': { body: METRICS },
  'GET /pause': NOT_ALLOWED,
  'GET /collective_rpc': NOT_ALLOWED,
  'GET /reset_prefix_cache': NOT_ALLOWED,
  'GET /v1/load_lora_adapter': NOT_ALLOWED,
  'GET /tokenize': NOT_ALLOWED,
  'POST /inference/v1/generate': {
    status: 400,
    body: { error: { message: '2 validation errors', type: 'Bad Request', param: 'body.token_ids', code: 400 } },
  },
};

/** A reply of /inference/v1/generate as it came, with other fields of its choice. */
function generated(choice: Record<string, Json> = {}, other: Record<string, Json> = {}): Answer {
  return {
    body: {
      request_id: 'generate-tokens-r1',
      model: 'tiny',
      created: 1795973884,
      usage: { prompt_tokens: 3, total_tokens: 6, completion_tokens: 3, prompt_tokens_details: null },
      prompt_logprobs: null,
      output_mode: 'tokens',
      ...other,
      choices: [
        {
          index: 0,
          finish_reason: 'length',
          stop_reason: null,
          token_ids: [153, 70, 145],
          weight_versions: [{ version: 'default', start: 0, end: 3 }],
          logprobs: {
            content: [
              { token_id: 153, logprob: -2.109215497970581, rank: 1, top_logprobs: [] },
              { token_id: 70, logprob: -0.3727666437625885, rank: 1, top_logprobs: [] },
              { token_id: 145, logprob: -3.584146022796631, rank: 6, top_logprobs: [] },
            ],
          },
          ...choice,
        },
      ],
    },
  };
}

/** A reply of /v1/completions as it came. Two tokens have the same (empty) text. */
function completed(choice: Record<string, Json> = {}): Answer {
  return {
    body: {
      id: 'cmpl-b2f651ec8b19fc2f',
      object: 'text_completion',
      model: 'tiny',
      choices: [
        {
          index: 0,
          text: '�c�',
          logprobs: {
            text_offset: [0, 0, 1],
            token_logprobs: [-2.109215497970581, -0.3727666437625885, -3.584146022796631],
            tokens: ['', 'c', ''],
            top_logprobs: [{ '': -2.109215497970581 }, { c: -0.3727666437625885 }, { '': -3.584146022796631 }],
          },
          finish_reason: 'length',
          stop_reason: null,
          token_ids: [153, 70, 145],
          prompt_logprobs: null,
          prompt_token_ids: [40, 41, 42],
          ...choice,
        },
      ],
      system_fingerprint: 'vllm-0.32.0-b4d8fe5c',
      usage: { prompt_tokens: 3, total_tokens: 6, completion_tokens: 3, prompt_tokens_details: null },
    },
  };
}

const GENERATE = 'POST /inference/v1/generate';
const COMPLETIONS = 'POST /v1/completions';
const OPTIONS: SamplingOptions = { maxTokens: 3, temperature: 1, topP: 1, topK: 0, minP: 0, seed: 7, stop: [] };
const call = (changes: Partial<SamplingOptions> = {}): GenerateCall => ({
  promptIds: Int32Array.of(40, 41, 42),
  options: { ...OPTIONS, ...changes },
  requestId: 'abcdefgh-00000001',
  affinityKey: 'one',
});
const factsWith = (...routes: VllmRoute[]): VllmFacts => ({
  modelName: 'tiny',
  contextLength: 1024,
  version: '0.32.0',
  fingerprint: '',
  logprobs: 'raw',
  routes: new Set(routes),
  servedModel: 'tiny',
  checkpoint: null,
  device: null,
  loraEnabled: false,
});
const TOKENS = factsWith('tokens-in-tokens-out');

let http: HttpClient;
let server: CannedServer;

beforeEach(async () => {
  server = await startCannedServer();
  http = createHttpClient({ backend: 'lab', url: server.url });
});
afterEach(async () => {
  await http.close();
  await server.close();
});

describe('describing a vLLM', () => {
  it('finds model, context, version, routes and kind of log-probabilities of a server in development mode', async () => {
    server.handlers = DEVELOPMENT;
    const facts = await vllm.describe(http, { model: null });
    expect(facts).toMatchObject({ modelName: 'tiny', contextLength: 1024, version: '0.32.0', logprobs: 'raw' });
    expect([...facts.routes].sort()).toEqual(
      ['flush', 'lora', 'pause', 'reload', 'tokenize', 'tokens-in-tokens-out', 'weight-label'].sort(),
    );
    expect(vllmFacts(facts)).toMatchObject({
      servedModel: 'tiny',
      device: 'cpu',
      loraEnabled: true,
      checkpoint: { path: 'tiny', version: 'default' },
    });
  });

  it('has a fingerprint that stays while the process runs and changes when it was started again', async () => {
    server.handlers = { ...DEVELOPMENT };
    const first = await vllm.describe(http, { model: null });
    // What the server says anew each time is in no fingerprint.
    server.handlers['GET /v1/models'] = { body: { object: 'list', data: [card('tiny', { created: 1795990000 })] } };
    expect((await vllm.describe(http, { model: null })).fingerprint).toBe(first.fingerprint);
    server.handlers['GET /metrics'] = { body: METRICS.replace('1.79597381488e+09', '1.79598e+09') };
    expect((await vllm.describe(http, { model: null })).fingerprint).not.toBe(first.fingerprint);
  });

  it('knows that a route that answers 403 to everything is switched off', async () => {
    const message = 'Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them.';
    server.handlers = {
      ...DEVELOPMENT,
      [GENERATE]: { status: 403, body: { error: { message, type: 'PermissionDeniedError', param: null, code: 403 } } },
    };
    expect((await vllm.describe(http, { model: null })).routes).not.toContain('tokens-in-tokens-out');
  });

  it('finds the kind of log-probabilities out by forcing tokens where the server does not tell', async () => {
    const forced = (numbers: (token: number) => number): Handler => {
      return (body) => {
        const [token] = (body as { allowed_token_ids: number[] }).allowed_token_ids;
        return completed({ token_ids: [token ?? 0], logprobs: { token_logprobs: [numbers(token ?? 0)] } });
      };
    };
    const plain = { 'GET /v1/models': { body: MODELS }, 'GET /metrics': { body: METRICS } };
    server.handlers = { ...plain, [COMPLETIONS]: forced((token) => (token === 0 ? 0 : -10.514419555664062)) };
    expect((await vllm.describe(http, { model: null })).logprobs).toBe('raw');
    server.handlers = { ...plain, [COMPLETIONS]: forced(() => 0) };
    expect((await vllm.describe(http, { model: null })).logprobs).toBe('sampled');
    server.handlers = { ...plain, [COMPLETIONS]: forced((token) => 3.5 - token) };
    expect((await vllm.describe(http, { model: null })).logprobs).toBe('unknown');
    server.handlers = { ...DEVELOPMENT, 'GET /server_info?config_format=json': MODE('processed_logprobs') };
    expect((await vllm.describe(http, { model: null })).logprobs).toBe('sampled');
  });

  it('knows after a restart of the studio which of its adapters serves', async () => {
    const adapters = ['studio:v2', 'studio:v3', 'other'].map((id) =>
      card(id, { parent: 'tiny', root: '/a', max_model_len: null }),
    );
    server.handlers = { ...DEVELOPMENT, 'GET /v1/models': { body: { data: [card('tiny'), ...adapters] } } };
    server.handlers['GET /weight_info'] = { body: { weight_version: 'v2' } };
    expect(await vllm.describe(http, { model: null })).toMatchObject({ servedModel: 'studio:v2', checkpoint: null });
    server.handlers['GET /weight_info'] = { body: { weight_version: 'full-9' } };
    expect(await vllm.describe(http, { model: null })).toMatchObject({ servedModel: 'tiny' });
    server.handlers['GET /weight_info'] = NOT_FOUND;
    expect(await vllm.describe(http, { model: null })).toMatchObject({ servedModel: 'studio:v3' });
    // An adapter of somebody else may be asked for by name; its context is its base's.
    expect(await vllm.describe(http, { model: 'other' })).toMatchObject({ modelName: 'other', contextLength: 1024 });
  });

  it('names what it found where another server or another model answers', async () => {
    server.handlers = { 'GET /v1/models': { body: { data: [{ ...card('m.gguf'), owned_by: 'llamacpp' }] } } };
    const other = await errorOf(vllm.describe(http, { model: null }));
    expect(other).toBeInstanceOf(Invalid);
    expect(other.message).toContain('"llamacpp"');
    server.handlers = DEVELOPMENT;
    const missing = await errorOf(vllm.describe(http, { model: 'qwen' }));
    expect(missing).toBeInstanceOf(NotFound);
    expect(missing.message).toMatch(/lab .*127\.0\.0\.1.*qwen.*tiny/);
  });
});

describe('generation on vLLM', () => {
  it('reads ids, numbers, length and spans of weight versions from /inference/v1/generate', async () => {
    server.handlers[GENERATE] = generated({
      weight_versions: [
        { version: 'mid', start: 0, end: 2 },
        { version: 'mid2', start: 2, end: 3 },
      ],
    });
    const reply = await vllm.generate(http, TOKENS, call());
    expect(reply).toMatchObject({
      finish: 'length',
      logprobKind: 'raw',
      promptTokens: 3,
      stopString: null,
      endTokenSampled: false,
      weightVersions: [
        { version: 'mid', start: 0, end: 2 },
        { version: 'mid2', start: 2, end: 3 },
      ],
    });
    expect([...reply.ids]).toEqual([153, 70, 145]);
    expect(reply.logprobs[2]).toBeCloseTo(-3.584146, 5);
  });

  it('reads the same from /v1/completions, without spans', async () => {
    server.handlers[COMPLETIONS] = completed();
    const reply = await vllm.generate(http, factsWith(), call());
    expect([...reply.ids]).toEqual([153, 70, 145]);
    expect(reply.logprobs[0]).toBeCloseTo(-2.109215, 5);
    expect(reply).toMatchObject({ promptTokens: 3, weightVersions: null, finish: 'length' });
    expect(server.asked[0]?.body).toMatchObject({ prompt: [40, 41, 42], return_token_ids: true });
  });

  it('always sends every sampling field, and the one of the constraint', async () => {
    server.handlers[GENERATE] = generated();
    server.handlers[COMPLETIONS] = completed();
    const all = {
      n: 1,
      max_tokens: 3,
      temperature: 1,
      top_p: 1,
      top_k: 0,
      min_p: 0,
      seed: 7,
      stop: [],
      presence_penalty: 0,
      frequency_penalty: 0,
      repetition_penalty: 1,
      min_tokens: 0,
      ignore_eos: false,
      logprobs: 0,
      skip_special_tokens: false,
      spaces_between_special_tokens: false,
    };
    await vllm.generate(http, TOKENS, call());
    const { sampling_params, ...rest } = (server.asked[0]?.body ?? {}) as Record<string, unknown>;
    expect(sampling_params).toEqual(all);
    expect(rest).toMatchObject({ token_ids: [40, 41, 42], model: 'tiny', request_id: 'abcdefgh-00000001' });
    await vllm.generate(http, factsWith(), call());
    expect(server.asked[1]?.body).toMatchObject(all);
    const schema = { type: 'object' };
    const constraints: [Constraint, field: object][] = [
      [{ kind: 'json_schema', schema }, { json: schema }],
      [{ kind: 'regex', pattern: '[ab]{3}' }, { regex: '[ab]{3}' }],
      [{ kind: 'grammar', grammar: 'root ::= "a"' }, { grammar: 'root ::= "a"' }],
      [{ kind: 'choice', choices: ['zqx'] }, { choice: ['zqx'] }],
    ];
    for (const [constraint, field] of constraints) {
      const reply = await vllm.generate(http, TOKENS, call({ constraint }));
      expect(server.asked.at(-1)?.body).toMatchObject({ sampling_params: { structured_outputs: field } });
      // The mask is in vLLM's numbers even where they are raw otherwise.
      expect(reply.logprobKind).toBe('constrained');
    }
  });

  it('says of the server that computes numbers after temperature that they are so', async () => {
    server.handlers[GENERATE] = generated();
    expect((await vllm.generate(http, { ...TOKENS, logprobs: 'sampled' } as VllmFacts, call())).logprobKind).toBe(
      'sampled',
    );
  });

  it('refuses a temperature that the server would raise without a word', async () => {
    const refused = await errorOf(vllm.generate(http, TOKENS, call({ temperature: 0.005 })));
    expect(refused).toBeInstanceOf(Invalid);
    expect(refused.message).toContain('0.01');
    expect(server.asked).toEqual([]);
    server.handlers[GENERATE] = generated();
    for (const temperature of [0, 0.01]) await vllm.generate(http, TOKENS, call({ temperature }));
  });

  it('tells a stop string, the end token and another end token apart', async () => {
    server.handlers[GENERATE] = generated({ finish_reason: 'stop', stop_reason: 'n:' });
    expect(await vllm.generate(http, TOKENS, call())).toMatchObject({
      finish: 'stop',
      stopString: 'n:',
      endTokenSampled: false,
    });
    for (const stop_reason of [null, 145]) {
      server.handlers[GENERATE] = generated({ finish_reason: 'stop', stop_reason });
      expect(await vllm.generate(http, TOKENS, call())).toMatchObject({
        finish: 'eos',
        stopString: null,
        endTokenSampled: true,
      });
    }
  });

  it('does not take a reply that ended for no reason, or for one that is not known, for a whole one', async () => {
    for (const finish_reason of [null, '', 'tired', 7]) {
      server.handlers[GENERATE] = generated({ finish_reason });
      server.handlers[COMPLETIONS] = completed({ finish_reason });
      for (const facts of [TOKENS, factsWith()])
        expect((await errorOf(vllm.generate(http, facts, call()))).message).toContain(
          'it ended for a reason that is not known here',
        );
    }
  });

  it('has no end token where an engine that ended at once gave no ids', async () => {
    server.handlers[GENERATE] = generated({ finish_reason: 'stop', token_ids: [], logprobs: { content: [] } });
    const nothing = await vllm.generate(http, TOKENS, call());
    expect(nothing).toMatchObject({ finish: 'eos', endTokenSampled: false, ids: { length: 0 } });
  });

  it('gives what a stopped generation has, nothing included', async () => {
    server.handlers[GENERATE] = generated({ finish_reason: 'abort' });
    expect(await vllm.generate(http, TOKENS, call())).toMatchObject({ finish: 'aborted' });
    server.handlers[GENERATE] = generated({
      finish_reason: 'abort',
      token_ids: [],
      logprobs: { content: [] },
      weight_versions: [],
    });
    const nothing = await vllm.generate(http, TOKENS, call());
    expect(nothing).toMatchObject({ finish: 'aborted', weightVersions: null });
    expect(nothing.ids).toHaveLength(0);
  });

  it('refuses a reply without ids, with too few numbers, with those of other tokens or of no known end', async () => {
    const shapes: [Record<string, Json>, RegExp][] = [
      [{ token_ids: null }, /no token ids/],
      [{ token_ids: [153, 'token_id:70', 145] }, /no token ids/],
      [{ logprobs: null }, /3 token ids but 0 log-probabilities/],
      [{ logprobs: { content: [{ token: 'token_id:153', logprob: -2 }] } }, /3 token ids but 1/],
      [
        { logprobs: { content: [153, 70, 145].map((id) => ({ token: `token_id:${id}`, logprob: -2 })) } },
        /of another token/,
      ],
      [{ finish_reason: 'repetition' }, /repetition/],
    ];
    for (const [changes, says] of shapes) {
      server.handlers[GENERATE] = generated(changes);
      const refused = await errorOf(vllm.generate(http, TOKENS, call()));
      expect(refused).toBeInstanceOf(Invalid);
      expect(refused.message).toMatch(says);
      expect(refused.message).toContain('lab');
    }
    server.handlers[COMPLETIONS] = completed({ token_ids: null });
    expect(await errorOf(vllm.generate(http, factsWith(), call()))).toBeInstanceOf(Invalid);
  });

  it('passes a masked number on and turns null into NaN; half a label is none', async () => {
    server.handlers[COMPLETIONS] = completed({ logprobs: { token_logprobs: [-9999, null, -1] } });
    const reply = await vllm.generate(http, factsWith(), call());
    expect([...reply.logprobs]).toEqual([-9999, Number.NaN, -1]);
    for (const weight_versions of [
      [{ version: 'a', start: 0, end: 2 }],
      [{ version: 'a', start: 1, end: 3 }],
      [{ version: 'a', start: 0, end: 4 }],
      [{ version: 7, start: 0, end: 3 }],
      null,
    ]) {
      server.handlers[GENERATE] = generated({ weight_versions });
      expect((await vllm.generate(http, TOKENS, call())).weightVersions).toBeNull();
    }
  });

  it('says what the server said of a prompt that does not fit, a wrong model and an id out of the vocabulary', async () => {
    const refusals: [message: string, status: number, kind: typeof Invalid | typeof NotFound, says: string][] = [
      [
        'The decoder prompt (length 1024) plus the number of requested output tokens (at least 1) is longer than the maximum model length of 1024. Make sure that `max_model_len` is no smaller than the number of text tokens (prompt + requested output tokens).',
        400,
        Invalid,
        'context of 1024 tokens',
      ],
      [
        "This model's maximum context length is 1024 tokens. However, you requested 2000 tokens.",
        400,
        Invalid,
        'context of 1024 tokens',
      ],
      ['The model `nope` does not exist. Valid aliases: tiny.', 404, NotFound, 'Valid aliases: tiny'],
      ['Token id 4200 is out of vocabulary', 400, Invalid, 'Token id 4200 is out of vocabulary'],
      ['Invalid grammar specification.', 400, Invalid, 'Invalid grammar specification'],
    ];
    for (const [message, status, kind, says] of refusals) {
      server.handlers[GENERATE] = {
        status,
        body: { error: { message, type: 'BadRequestError', param: null, code: status } },
      };
      const refused = await errorOf(vllm.generate(http, TOKENS, call()));
      expect(refused).toBeInstanceOf(kind);
      expect(refused.message).toContain(says);
    }
  });
});

describe('scoring on vLLM', () => {
  const ENTRIES: Json[] = [
    null,
    {
      41: { logprob: -11.128341674804688, rank: 246 },
      21: { logprob: -1.6088, rank: 1 },
      70: { logprob: -2.47, rank: 2 },
    },
    {
      42: { logprob: -12.11467456817627, rank: 214 },
      70: { logprob: -0.2065, rank: 1 },
      21: { logprob: -2.55, rank: 2 },
    },
    { 153: { logprob: -2.109215497970581, rank: 1 }, 140: { logprob: -2.5844385623931885, rank: 2 } },
    { 70: { logprob: -0.3727666437625885, rank: 1 }, 28: { logprob: -2.690683603286743, rank: 2 } },
  ];
  const pair = { promptIds: Int32Array.of(40, 41, 42), completionIds: Int32Array.of(153, 70), entropy: false };
  const score = (alternatives: number) => vllm.score?.(http, TOKENS, { ...pair, alternatives });

  it('reads the numbers by id, and the likeliest where they are asked for', async () => {
    server.handlers[COMPLETIONS] = completed({ prompt_logprobs: ENTRIES });
    const plain = await score(0);
    expect([...(plain?.logprobs ?? [])].map((value) => value.toFixed(4))).toEqual(['-2.1092', '-0.3728']);
    expect(plain?.alternatives).toBeNull();
    expect(server.asked[0]?.body).toMatchObject({ prompt: [40, 41, 42, 153, 70], prompt_logprobs: 0, max_tokens: 1 });
    const three = await score(3);
    expect([...(three?.alternatives?.ids ?? [])]).toEqual([153, 140, -1, 70, 28, -1]);
    expect(three?.alternatives?.logprobs[1]).toBeCloseTo(-2.58444, 4);
    expect(three?.alternatives?.logprobs[2]).toBeNaN();
  });

  it('asks for the last token as the only one allowed where the context would be full', async () => {
    const sampled = {
      token_logprobs: [-0.3727],
      tokens: ['token_id:70'],
      top_logprobs: [{ 'token_id:70': -0.3727, 'token_id:28': -2.6907 }],
    };
    server.handlers[COMPLETIONS] = completed({ prompt_logprobs: ENTRIES.slice(0, 4), logprobs: sampled });
    const full = { ...TOKENS, contextLength: 5 };
    const scores = await vllm.score?.(http, full, { ...pair, alternatives: 2 });
    expect([...(scores?.logprobs ?? [])].map((value) => value.toFixed(4))).toEqual(['-2.1092', '-0.3727']);
    expect([...(scores?.alternatives?.ids ?? [])]).toEqual([153, 140, 70, 28]);
    const asked = { prompt: [40, 41, 42, 153], allowed_token_ids: [70], logprobs: 2, max_tokens: 1 };
    expect(server.asked[0]?.body).toMatchObject(asked);
    // Numbers from after the mask would be 0 for any token: such a server says by itself that the prompt is too long.
    const masked: VllmFacts = { ...full, logprobs: 'sampled' };
    await vllm.score?.(http, masked, { ...pair, alternatives: 0 }).catch(() => {});
    expect(server.asked[1]?.body).toMatchObject({ prompt: [40, 41, 42, 153, 70] });
  });

  it('has no number for the first token of all', async () => {
    server.handlers[COMPLETIONS] = completed({ prompt_logprobs: [null, { 70: { logprob: -1, rank: 1 } }] });
    const scores = await vllm.score?.(http, TOKENS, {
      promptIds: new Int32Array(0),
      completionIds: Int32Array.of(40, 70),
      alternatives: 0,
      entropy: false,
    });
    expect([...(scores?.logprobs ?? [])]).toEqual([Number.NaN, -1]);
  });

  it('does not ask a server whose engine would end', async () => {
    const facts: VllmFacts = { ...TOKENS, device: 'cpu', loraEnabled: true };
    const refused = await errorOf(vllm.score?.(http, facts, { ...pair, alternatives: 0 }));
    expect(refused).toBeInstanceOf(Unavailable);
    expect(refused.message).toContain('--enable-lora');
    expect(server.asked).toEqual([]);
  });

  it('refuses a list of another length, as a prefix cache that is read gives it', async () => {
    for (const prompt_logprobs of [null, ENTRIES.slice(2)]) {
      server.handlers[COMPLETIONS] = completed({ prompt_logprobs });
      expect(await errorOf(score(0))).toBeInstanceOf(Invalid);
    }
  });
});

describe('a scoring that vLLM stopped', () => {
  it('has no numbers, and is told from one that is broken', async () => {
    server.handlers[COMPLETIONS] = completed({ prompt_logprobs: null, finish_reason: 'abort' });
    const call = { promptIds: Int32Array.of(40), completionIds: Int32Array.of(153), alternatives: 0, entropy: false };
    expect(await vllm.score?.(http, TOKENS, call)).toBeNull();
  });
});

describe('texts and templates on vLLM', () => {
  it('adds no special tokens, and gives templates as ids', async () => {
    server.handlers['POST /tokenize'] = {
      body: { count: 3, max_model_len: 1024, tokens: [68, 2, 69], token_strs: null },
    };
    expect([...((await vllm.tokenize?.(http, TOKENS, 'a<|im_end|>b', false)) ?? [])]).toEqual([68, 2, 69]);
    expect(server.asked[0]?.body).toEqual({ model: 'tiny', prompt: 'a<|im_end|>b', add_special_tokens: false });
    const messages = [{ role: 'user' as const, content: 'hi' }];
    const tool = { name: 'ask', description: 'Asks.', parameters: { type: 'object' } };
    await vllm.applyTemplate?.(http, TOKENS, messages, { addGenerationPrompt: true, tools: [] });
    expect(server.asked[1]?.body).not.toHaveProperty('tools');
    await vllm.applyTemplate?.(http, TOKENS, messages, { addGenerationPrompt: false, tools: [tool] });
    expect(server.asked[2]?.body).toMatchObject({
      messages,
      add_generation_prompt: false,
      tools: [{ type: 'function', function: tool }],
    });
    server.handlers['POST /detokenize'] = { body: { prompt: 'c<|im_end|>d' } };
    expect(await vllm.detokenize?.(http, TOKENS, Int32Array.of(70, 2, 71))).toBe('c<|im_end|>d');
  });

  it('puts vectors in the order of the texts', async () => {
    server.handlers['POST /v1/embeddings'] = {
      body: {
        data: [
          { index: 1, embedding: [0, 1] },
          { index: 0, embedding: [1, 0] },
        ],
      },
    };
    expect(await vllm.embed?.(http, TOKENS, ['a', 'b'])).toEqual([Float32Array.of(1, 0), Float32Array.of(0, 1)]);
    expect(await errorOf(vllm.embed?.(http, TOKENS, ['a', 'b', 'c']))).toBeInstanceOf(Invalid);
  });

  it('says why the server is not well', async () => {
    server.handlers['GET /health'] = { body: '' };
    expect(await vllm.health(http)).toMatchObject({ ok: true });
    server.handlers['GET /health'] = { status: 503, body: '' };
    expect(await vllm.health(http)).toMatchObject({ ok: false, message: expect.stringContaining('503') });
  });
});

describe('the check of a vLLM', () => {
  it('says that it stands paused, and does not wait for an answer that would not come', async () => {
    server.handlers = {
      ...DEVELOPMENT,
      'GET /is_paused': { body: { is_paused: true } },
      'POST /tokenize': { body: { tokens: [40] } },
      'POST /detokenize': { body: { prompt: 'c' } },
      [GENERATE]: (body) =>
        Object.keys(body as object).length > 0 ? new Promise(() => undefined) : { status: 400, body: {} },
    };
    const found = await checkServer({
      url: server.url,
      key: null,
      kind: null,
      model: null,
      tokenizerFolder: null,
      contextLength: null,
      backendName: null,
      logger: silentLogger,
      ambient: systemAmbient(),
      protocols: PROTOCOLS,
    });
    expect(found).toMatchObject({ ok: false, kind: 'vllm', capabilities: null });
    expect(found.items.find(({ id }) => id === 'token_round_trip')).toMatchObject({
      status: 'fail',
      says: `The server at ${server.url} stands paused: it takes requests and answers none until it is resumed.`,
    });
  });
});

describe('new weights on a vLLM that is not in development mode', () => {
  const codeOf = (letter: string) => letter.charCodeAt(0);
  /** Started with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True alone. A token is a character. */
  function withAdapters(): string[] {
    const names = ['tiny'];
    const cards = () => names.map((id) => card(id, id === 'tiny' ? {} : { parent: 'tiny', max_model_len: null }));
    server.handlers = {
      'GET /v1/models': () => ({ body: { object: 'list', data: cards() } }),
      'GET /metrics': { body: METRICS },
      'GET /health': { body: '' },
      'GET /tokenize': NOT_ALLOWED,
      'GET /v1/load_lora_adapter': NOT_ALLOWED,
      'POST /tokenize': (body) => ({ body: { tokens: Array.from((body as { prompt: string }).prompt, codeOf) } }),
      'POST /detokenize': (body) => ({
        body: { prompt: String.fromCharCode(...(body as { tokens: number[] }).tokens) },
      }),
      [COMPLETIONS]: () => completed(),
      'POST /v1/load_lora_adapter': (body) => {
        names.push((body as { lora_name: string }).lora_name);
        return { body: 'Success: LoRA adapter added successfully.' };
      },
      'POST /v1/unload_lora_adapter': (body) => {
        names.splice(names.indexOf((body as { lora_name: string }).lora_name), 1);
        return { body: 'Success: LoRA adapter removed successfully.' };
      },
    };
    return names;
  }
  const open = () =>
    RemoteBackend.open({
      name: 'lab',
      url: server.url,
      protocol: vllm,
      model: null,
      tokenizerFolder: null,
      maxInFlight: 4,
      logger: silentLogger,
      ambient: systemAmbient(),
    });
  const lora = (version: string) => ({ source: { kind: 'lora' as const, path: `/${version}` }, version });
  const versionOf = async (backend: RemoteBackend) => {
    const request = { promptIds: Int32Array.of(40, 41, 42), options: OPTIONS, affinityKey: 'a' };
    const [settled] = await backend.generate([request]);
    return settled?.status === 'fulfilled' ? settled.value.weightVersions[0]?.version : settled?.reason;
  };
  /** Who was asked to go on from our prompt; the server is also asked of what kind its numbers are. */
  const models = () =>
    server.asked.flatMap(({ route, body }) => {
      const { model = '', prompt = [] } = (body ?? {}) as { model?: string; prompt?: number[] };
      return route === COMPLETIONS && prompt.length === 3 ? [model] : [];
    });

  it('come as adapters, behind our own gate, without a pause and with nothing to empty', async () => {
    const loaded = withAdapters();
    const backend = await open();
    try {
      expect(await backend.capabilities()).toMatchObject({ weightSources: ['lora'], canPause: false });
      expect(await versionOf(backend)).toBe('tiny');
      for (const version of ['v2', 'v3', 'v2']) {
        await backend.updateWeights(lora(version));
        expect(backend.trouble()).toBeNull();
        expect(await backend.weightVersion()).toBe(version);
        expect(await versionOf(backend)).toBe(version);
      }
      const served = models().slice(-4);
      expect(served[0]).toBe('tiny');
      // No name comes twice, so nothing of an earlier adapter is found in the prefix cache.
      expect(new Set(served).size).toBe(4);
      expect(loaded).toEqual(['tiny', served[3]]);
      const asked = server.asked.map(({ route }) => route).join(' ');
      expect(asked).not.toMatch(/POST \/(pause|resume|reset_prefix_cache)/);
    } finally {
      await backend.close();
    }
  });

  it('wait for the generations that are under way, and hold back those that come', async () => {
    withAdapters();
    const backend = await open();
    try {
      let answer = (): void => undefined;
      // The server is looked at before it gets the weights: that is answered.
      server.handlers[COMPLETIONS] = (body) =>
        (body as { prompt: number[] }).prompt.length === 3
          ? new Promise((reply) => (answer = () => reply(completed())))
          : completed();
      const asked = models().length;
      const old = versionOf(backend);
      while (models().length === asked) await new Promise((next) => setImmediate(next));
      const updating = backend.updateWeights(lora('v2'));
      while (backend.trouble() === null) await new Promise((next) => setImmediate(next));
      const fresh = versionOf(backend);
      await backend.tokenize('c', { special: false });
      expect(server.asked.map(({ route }) => route)).not.toContain('POST /v1/load_lora_adapter');
      server.handlers[COMPLETIONS] = () => completed();
      answer();
      await updating;
      expect([await old, await fresh]).toEqual(['tiny', 'v2']);
    } finally {
      await backend.close();
    }
  });

  it('leave the old ones serving when they cannot be loaded', async () => {
    withAdapters();
    const backend = await open();
    try {
      await backend.updateWeights(lora('v2'));
      const message = 'Loading lora bad failed: No adapter found for /v3';
      server.handlers['POST /v1/load_lora_adapter'] = { status: 404, body: { error: { message, code: 404 } } };
      await expect(backend.updateWeights(lora('v3'))).rejects.toThrow(
        /No adapter found.*The weights v2 go on serving\.$/,
      );
      expect(await versionOf(backend)).toBe('v2');
    } finally {
      await backend.close();
    }
  });
});
