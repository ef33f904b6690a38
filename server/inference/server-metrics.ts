/** From what a server says of itself (Prometheus text) to the figures a person looks at. */
import type { ServerFigures } from '../core/inference';
import type { MetricNames } from './remote/protocol';

/** What one reading of the text held; null where it held nothing of the kind. Counters count from the server's start. */
export interface MetricSample {
  atMs: number;
  running: number | null;
  waiting: number | null;
  /** Seconds. */
  timeToFirstToken: { sum: number; count: number } | null;
  timePerOutputToken: { sum: number; count: number } | null;
  generatedTokens: number | null;
  promptTokens: number | null;
  kvCacheUse: number | null;
  prefixHits: number | null;
  prefixQueries: number | null;
  prefixHitRate: number | null;
}

const MOST_CHARACTERS = 8 * 2 ** 20;
const MOST_IN_A_LINE = 8192;

interface Series {
  sum: number;
  count: number;
}

/** Never throws: what cannot be read is skipped. Several series of one name (engines, models) are taken together. */
export function readMetrics(text: string, names: MetricNames, atMs: number): MetricSample {
  const { prefixCache } = names;
  const wanted = new Set<string>();
  const spellings = [
    ...names.running,
    ...names.waiting,
    ...names.generatedTokens,
    ...names.promptTokens,
    ...names.kvCacheUse,
    ...(prefixCache && 'hits' in prefixCache ? [...prefixCache.hits, ...prefixCache.queries] : []),
    ...(prefixCache && 'rate' in prefixCache ? prefixCache.rate : []),
  ];
  for (const name of spellings) wanted.add(name).add(`${name}_total`);
  for (const name of [...names.timeToFirstToken, ...names.timePerOutputToken])
    wanted.add(`${name}_sum`).add(`${name}_count`);
  const found = sumByName(text.slice(0, MOST_CHARACTERS), wanted);

  const first = (spelt: readonly string[]): Series | null => {
    for (const name of spelt) {
      const series = found.get(name) ?? found.get(`${name}_total`);
      if (series) return series;
    }
    return null;
  };
  const total = (spelt: readonly string[]) => first(spelt)?.sum ?? null;
  const mean = (spelt: readonly string[]) => {
    const series = first(spelt);
    return series && series.sum / series.count;
  };
  const histogram = (spelt: readonly string[]) => {
    for (const name of spelt) {
      const [sum, count] = [found.get(`${name}_sum`), found.get(`${name}_count`)];
      if (sum && count) return { sum: sum.sum, count: count.sum };
    }
    return null;
  };
  return {
    atMs,
    running: total(names.running),
    waiting: total(names.waiting),
    timeToFirstToken: histogram(names.timeToFirstToken),
    timePerOutputToken: histogram(names.timePerOutputToken),
    generatedTokens: total(names.generatedTokens),
    promptTokens: total(names.promptTokens),
    kvCacheUse: mean(names.kvCacheUse),
    prefixHits: prefixCache && 'hits' in prefixCache ? total(prefixCache.hits) : null,
    prefixQueries: prefixCache && 'queries' in prefixCache ? total(prefixCache.queries) : null,
    prefixHitRate: prefixCache && 'rate' in prefixCache ? mean(prefixCache.rate) : null,
  };
}

/** @param before an earlier sample; null, or one of before a restart (a counter went back): no rates are known yet */
export function figuresBetween(before: MetricSample | null, now: MetricSample): ServerFigures {
  const seconds = before ? (now.atMs - before.atMs) / 1000 : 0;
  const earlier = before && seconds > 0 && !wentBack(before, now) ? before : null;
  const rate = (was: number | null | undefined, is: number | null) =>
    typeof was === 'number' && is !== null ? (is - was) / seconds : null;
  const meanMs = (was: Series | null | undefined, is: Series | null) => {
    const count = was && is ? is.count - was.count : 0;
    return was && is && count > 0 ? (1000 * (is.sum - was.sum)) / count : null;
  };
  return {
    running: now.running,
    waiting: now.waiting,
    timeToFirstTokenMs: meanMs(earlier?.timeToFirstToken, now.timeToFirstToken),
    timePerOutputTokenMs: meanMs(earlier?.timePerOutputToken, now.timePerOutputToken),
    tokensPerSecond: rate(earlier?.generatedTokens, now.generatedTokens),
    promptTokensPerSecond: rate(earlier?.promptTokens, now.promptTokens),
    kvCacheUse: share(now.kvCacheUse),
    prefixHitRate: share(now.prefixHitRate ?? hitRate(earlier, now)),
  };
}

function hitRate(before: MetricSample | null, now: MetricSample): number | null {
  if (!before || now.prefixHits === null || now.prefixQueries === null) return null;
  const queries = now.prefixQueries - (before.prefixQueries ?? 0);
  return queries > 0 ? (now.prefixHits - (before.prefixHits ?? 0)) / queries : null;
}

function share(value: number | null): number | null {
  return value === null ? null : Math.min(1, Math.max(0, value));
}

function wentBack(before: MetricSample, now: MetricSample): boolean {
  const counters = (sample: MetricSample) => [
    sample.timeToFirstToken?.count,
    sample.timePerOutputToken?.count,
    sample.generatedTokens,
    sample.promptTokens,
    sample.prefixQueries,
  ];
  const then = counters(before);
  return counters(now).some((value, k) => typeof value === 'number' && value < (then[k] ?? 0));
}

function sumByName(text: string, wanted: ReadonlySet<string>): Map<string, Series> {
  const found = new Map<string, Series>();
  for (let start = 0; start < text.length; ) {
    let end = text.indexOf('\n', start);
    if (end < 0) end = text.length;
    if (end - start <= MOST_IN_A_LINE) readLine(text.slice(start, end), wanted, found);
    start = end + 1;
  }
  return found;
}

/** `name{label="text",…} value [time]`; what stands between quotes may hold anything. */
function readLine(line: string, wanted: ReadonlySet<string>, found: Map<string, Series>): void {
  const name = /^\s*([A-Za-z_:][\w:]*)/.exec(line);
  if (!name?.[1] || !wanted.has(name[1])) return;
  const rest = line.slice(name[0].length).replace(/^\s*\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}/, '');
  const value = Number(/^\s*(\S+)/.exec(rest)?.[1] ?? Number.NaN);
  if (!Number.isFinite(value)) return;
  const known = found.get(name[1]);
  if (!known) found.set(name[1], { sum: value, count: 1 });
  else {
    known.sum += value;
    known.count += 1;
  }
}
