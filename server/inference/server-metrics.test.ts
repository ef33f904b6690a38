import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MetricNames } from './remote/protocol';
import { figuresBetween, readMetrics } from './server-metrics';

const NAMES: MetricNames = {
  route: '/metrics',
  running: ['vllm:num_requests_running'],
  waiting: ['vllm:num_requests_waiting'],
  timeToFirstToken: ['vllm:time_to_first_token_seconds'],
  timePerOutputToken: ['vllm:inter_token_latency_seconds', 'vllm:time_per_output_token_seconds'],
  generatedTokens: ['vllm:generation_tokens'],
  promptTokens: ['vllm:prompt_tokens'],
  kvCacheUse: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
  prefixCache: { hits: ['vllm:prefix_cache_hits'], queries: ['vllm:prefix_cache_queries'] },
};

const textOf = (at: {
  generated: number;
  first: [number, number];
  each: [number, number];
  cache: [number, number];
}) => `
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a \\"b\\" } c, 1"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2 1700000000000
vllm:num_requests_waiting{engine="0"} 1
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 99
vllm:time_to_first_token_seconds_bucket{le="0.1"} 4
vllm:time_to_first_token_seconds_sum{engine="0"} ${at.first[0]}
vllm:time_to_first_token_seconds_count{engine="0"} ${at.first[1]}
vllm:time_per_output_token_seconds_sum ${at.each[0]}
vllm:time_per_output_token_seconds_count ${at.each[1]}
vllm:generation_tokens_total{engine="0"} ${at.generated}
vllm:prompt_tokens_total{engine="0"} 1e3
vllm:gpu_cache_usage_perc{engine="0"} 0.25
vllm:gpu_cache_usage_perc{engine="1"} 0.75
vllm:prefix_cache_hits_total ${at.cache[0]}
vllm:prefix_cache_queries_total ${at.cache[1]}
a line that is none of all this {{{ 5
vllm:num_requests_waiting NaN
`;

describe('figures from the metrics of a server', () => {
  const early = readMetrics(textOf({ generated: 100, first: [1, 10], each: [2, 100], cache: [10, 100] }), NAMES, 1000);
  const late = readMetrics(textOf({ generated: 600, first: [2, 15], each: [6, 500], cache: [90, 200] }), NAMES, 6000);

  it('takes the engines of a server together and reads older spellings', () => {
    expect(figuresBetween(null, early)).toEqual({
      running: 5,
      waiting: 1,
      timeToFirstTokenMs: null,
      timePerOutputTokenMs: null,
      tokensPerSecond: null,
      promptTokensPerSecond: null,
      kvCacheUse: 0.5,
      prefixHitRate: null,
    });
  });

  it('gives rates and means over the time between two readings', () => {
    expect(figuresBetween(early, late)).toMatchObject({
      timeToFirstTokenMs: 200,
      timePerOutputTokenMs: 10,
      tokensPerSecond: 100,
      promptTokensPerSecond: 0,
      prefixHitRate: 0.8,
    });
  });

  it('knows no rate across a restart, and none where nothing was counted between', () => {
    expect(figuresBetween(late, { ...early, atMs: 9000 })).toMatchObject({ tokensPerSecond: null, running: 5 });
    expect(figuresBetween(late, { ...late, atMs: 9000 })).toMatchObject({
      timeToFirstTokenMs: null,
      prefixHitRate: null,
      tokensPerSecond: 0,
    });
    expect(figuresBetween(late, late).tokensPerSecond).toBeNull();
  });

  it('is told nothing by a server without metrics, and reads a rate where there is one', () => {
    const empty = readMetrics('<html>404</html>', NAMES, 0);
    expect(Object.values(figuresBetween(empty, { ...empty, atMs: 1000 })).every((value) => value === null)).toBe(true);
    const gauge = readMetrics(
      'sglang:cache_hit_rate 0.4\n',
      { ...NAMES, prefixCache: { rate: ['sglang:cache_hit_rate'] } },
      0,
    );
    expect(figuresBetween(null, gauge).prefixHitRate).toBe(0.4);
  });

  it('takes any text without throwing, and in no time that grows with the square of its length', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom('vllm:num_requests_running', '{', '}', '"', '\\', ' ', '\n', '1e999', '-0', '{a="', '"}'),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const { running } = readMetrics(pieces.join(''), NAMES, 0);
        expect(running === null || Number.isFinite(running)).toBe(true);
      }),
    );
    readMetrics(`vllm:num_requests_running{${'"a'.repeat(4000)}\n`.repeat(500), NAMES, 0);
  });
});
