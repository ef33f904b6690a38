/** Reads one line of a rollout batch. Every refusal is Invalid and names the line. */
import { Invalid } from '../errors';
import type { WeightSpan } from '../tokens/chunk';
import {
  FINAL_TRAJECTORY_STATUSES,
  type Json,
  type JsonObject,
  LOGPROB_KINDS,
  SEGMENT_KINDS,
  type SegmentKind,
} from '../vocabulary';
import type { BatchLine } from './line';

/**
 * Only group_id, trajectory_id, step_rewards, token_ids, generation_mask and step_index are required; an absent status
 * is `completed`. Log-probabilities that are null become NaN: whether one may be missing is for its reader to say.
 * The bare NaN and Infinity that Python writes are read as numbers.
 * @param lineNumber from 1, for messages
 */
export function parseBatchLine(line: string, lineNumber: number): BatchLine {
  const read = new LineReader(parseObject(line, lineNumber), lineNumber);
  const ids = read.integers('token_ids', 0, 2 ** 31 - 1);
  const n = ids.length;
  const parsed: Omit<BatchLine, 'extra'> = {
    runId: read.text('run_id'),
    groupId: read.requiredText('group_id'),
    taskId: read.text('task_id'),
    trajectoryId: read.requiredText('trajectory_id'),
    sequenceIndex: read.count('sequence_index'),
    skill: read.text('skill'),
    skillVersion: read.count('skill_version'),
    backend: read.text('backend'),
    status: read.word('status', FINAL_TRAJECTORY_STATUSES) ?? 'completed',
    stepRewards: read.numbers('step_rewards', true),
    reward: read.number('reward'),
    rewardComponents: read.components(),
    stateKeys: read.texts('state_keys'),
    advantages: read.numbers('advantages', false),
    weightVersions: read.weightVersions(n),
    logprobKind: read.word('logprob_kind', LOGPROB_KINDS),
    truncated: read.flag('truncated'),
    humanEdited: read.flag('human_edited'),
    approximate: read.flag('approximate'),
    tokens: {
      ids: Int32Array.from(ids),
      mask: Uint8Array.from(read.integers('generation_mask', 0, 1, n)),
      stepIndex: Int32Array.from(read.integers('step_index', -1, 2 ** 31 - 1, n)),
      segment: read.segments(n),
      logprobs: read.logprobs('logprobs', n),
      policyLogprobs: read.logprobs('policy_logprobs', n),
      refLogprobs: read.logprobs('ref_logprobs', n),
    },
  };
  if (parsed.stepRewards === null && (parsed.status === 'completed' || parsed.status === 'truncated'))
    throw read.wrong('step_rewards', `is null, but the trajectory is ${parsed.status}; it must be a list of numbers`);
  return { ...parsed, extra: read.rest() };
}

function parseObject(line: string, lineNumber: number): JsonObject {
  let value: Json;
  try {
    value = JSON.parse(line) as Json;
  } catch (problem) {
    try {
      value = JSON.parse(quoteBareNumbers(line)) as Json;
    } catch {
      throw new Invalid(`Line ${lineNumber} is not JSON: ${(problem as Error).message}.`, { line: lineNumber });
    }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Invalid(`Line ${lineNumber} is not a JSON object.`, { line: lineNumber });
  return value;
}

/** NaN, Infinity and -Infinity outside of strings, put into quotes. Strings are stepped over by hand: they may be long. */
function quoteBareNumbers(line: string): string {
  const marks = /"|-?\bInfinity\b|\bNaN\b/g;
  const parts: string[] = [];
  let from = 0;
  for (let found = marks.exec(line); found; found = marks.exec(line)) {
    if (found[0] === '"') marks.lastIndex = endOfString(line, marks.lastIndex);
    else {
      parts.push(line.slice(from, found.index), `"${found[0]}"`);
      from = marks.lastIndex;
    }
  }
  return [...parts, line.slice(from)].join('');
}

/** Behind the quote that ends the string whose first character is at `from`. */
function endOfString(line: string, from: number): number {
  for (let end = line.indexOf('"', from); end !== -1; end = line.indexOf('"', end + 1)) {
    let slashes = 0;
    while (line[end - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return line.length;
}

const BARE_NUMBERS: Record<string, number> = { NaN: Number.NaN, Infinity: Infinity, '-Infinity': -Infinity };

class LineReader {
  readonly #source: JsonObject;
  readonly #line: number;
  readonly #known = new Set<string>();

  constructor(source: JsonObject, line: number) {
    this.#source = source;
    this.#line = line;
  }

  wrong(key: string, problem: string): Invalid {
    return new Invalid(`Line ${this.#line}: ${key} ${problem}.`, { line: this.#line, key });
  }

  /** Undefined and null are alike: a value that does not exist. */
  #take(key: string): Json {
    this.#known.add(key);
    return Object.hasOwn(this.#source, key) ? (this.#source[key] ?? null) : null;
  }

  rest(): JsonObject {
    const extra: JsonObject = {};
    for (const [key, value] of Object.entries(this.#source))
      if (!this.#known.has(key))
        Object.defineProperty(extra, key, { value, enumerable: true, writable: true, configurable: true });
    return extra;
  }

  text(key: string): string | null {
    const value = this.#take(key);
    if (value === null || typeof value === 'string') return value;
    throw this.wrong(key, `is ${shown(value)}; it must be text`);
  }

  requiredText(key: string): string {
    const value = this.text(key);
    if (value === null) throw this.wrong(key, 'is missing');
    return value;
  }

  number(key: string): number | null {
    const value = this.#take(key);
    if (value === null || (typeof value === 'number' && Number.isFinite(value))) return value;
    throw this.wrong(key, `is ${shown(value)}; it must be a number or null`);
  }

  count(key: string): number | null {
    const value = this.number(key);
    if (value !== null && (!Number.isInteger(value) || value < 0))
      throw this.wrong(key, `is ${value}; it must be a whole number of at least 0`);
    return value;
  }

  flag(key: string): boolean {
    const value = this.#take(key);
    if (value === null) return false;
    if (typeof value !== 'boolean') throw this.wrong(key, `is ${shown(value)}; it must be true or false`);
    return value;
  }

  word<T extends string>(key: string, words: readonly T[]): T | null {
    const value = this.#take(key);
    if (value === null) return null;
    const word = words.find((candidate) => candidate === value);
    if (word === undefined) throw this.wrong(key, `is ${shown(value)}; it must be one of ${words.join(', ')}`);
    return word;
  }

  #list(key: string): Json[] | null {
    const value = this.#take(key);
    if (value === null || Array.isArray(value)) return value;
    throw this.wrong(key, `is ${shown(value)}; it must be a list`);
  }

  numbers(key: string, required: boolean): number[] | null {
    const list = this.#list(key);
    if (list === null && required && !Object.hasOwn(this.#source, key)) throw this.wrong(key, 'is missing');
    list?.forEach((value, at) => {
      if (typeof value !== 'number' || !Number.isFinite(value))
        throw this.wrong(key, `holds ${shown(value)} at position ${at}; it must hold numbers`);
    });
    return list as number[] | null;
  }

  texts(key: string): string[] | null {
    const list = this.#list(key);
    list?.forEach((value, at) => {
      if (typeof value !== 'string')
        throw this.wrong(key, `holds ${shown(value)} at position ${at}; it must hold text`);
    });
    return list as string[] | null;
  }

  components(): Record<string, number> | null {
    const key = 'reward_components';
    const value = this.#take(key);
    if (value === null) return null;
    if (typeof value !== 'object' || Array.isArray(value)) throw this.wrong(key, 'must be an object of numbers');
    for (const [name, part] of Object.entries(value))
      if (typeof part !== 'number' || !Number.isFinite(part))
        throw this.wrong(key, `holds ${shown(part)} under ${name}; it must hold numbers`);
    return value as Record<string, number>;
  }

  /** A required per-token column; `length` is that of token_ids. */
  integers(key: string, low: number, high: number, length?: number): number[] {
    const list = this.#list(key);
    if (list === null) throw this.wrong(key, 'is missing');
    this.#sameLength(key, list, length);
    for (let k = 0; k < list.length; k++) {
      const value = list[k];
      if (typeof value !== 'number' || !Number.isInteger(value) || value < low || value > high)
        throw this.wrong(
          key,
          `holds ${shown(value)} at position ${k}; it must hold ${low === 0 && high === 1 ? '0 or 1' : `whole numbers from ${low}`}`,
        );
    }
    return list as number[];
  }

  logprobs(key: string, length: number): Float64Array | null {
    const list = this.#list(key);
    if (list === null) return null;
    this.#sameLength(key, list, length);
    const column = new Float64Array(list.length);
    for (let k = 0; k < list.length; k++) {
      const value = list[k];
      if (typeof value === 'number') column[k] = value;
      else if (value === null) column[k] = Number.NaN;
      else if (typeof value === 'string' && Object.hasOwn(BARE_NUMBERS, value))
        column[k] = BARE_NUMBERS[value] as number;
      else throw this.wrong(key, `holds ${shown(value)} at position ${k}; it must hold numbers or null`);
    }
    return column;
  }

  segments(length: number): Uint8Array | null {
    const key = 'segment_kind';
    const list = this.#list(key);
    if (list === null) return null;
    this.#sameLength(key, list, length);
    const column = new Uint8Array(list.length);
    for (let k = 0; k < list.length; k++) {
      const code = SEGMENT_KINDS.indexOf(list[k] as SegmentKind);
      if (code < 0)
        throw this.wrong(key, `holds ${shown(list[k])} at position ${k}; it must hold ${SEGMENT_KINDS.join(', ')}`);
      column[k] = code;
    }
    return column;
  }

  weightVersions(length: number): WeightSpan[] | null {
    const key = 'weight_versions';
    const list = this.#list(key);
    return (
      list?.map((span, at) => {
        const { version, start, end } = (
          typeof span === 'object' && span !== null && !Array.isArray(span) ? span : {}
        ) as JsonObject;
        const placed =
          typeof start === 'number' && typeof end === 'number' && start >= 0 && start <= end && end <= length;
        if (
          !placed ||
          !Number.isInteger(start) ||
          !Number.isInteger(end) ||
          (typeof version !== 'string' && typeof version !== 'number')
        )
          throw this.wrong(
            key,
            `holds ${shown(span)} at position ${at}; it must hold {version, start, end} within the ${length} tokens`,
          );
        return { version: String(version), start, end };
      }) ?? null
    );
  }

  #sameLength(key: string, list: Json[], length: number | undefined): void {
    if (length !== undefined && list.length !== length)
      throw this.wrong(key, `has ${list.length} entries, but token_ids has ${length}`);
  }
}

function shown(value: Json | undefined): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}
