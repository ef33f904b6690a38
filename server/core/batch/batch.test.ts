import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Invalid } from '../errors';
import type { TokenSequence } from '../tokens/chunk';
import { FINAL_TRAJECTORY_STATUSES, LOGPROB_KINDS, SEGMENT_KINDS } from '../vocabulary';
import type { BatchLine } from './line';
import { parseBatchLine } from './parse';
import { batchLine, serializeBatchLine } from './serialize';

const smallest = {
  group_id: 'g',
  trajectory_id: 't',
  step_rewards: [0.5],
  token_ids: [5, 6, 7],
  generation_mask: [0, 1, 1],
  step_index: [-1, 0, 0],
};
const parse = (more: object, lineNumber = 1) => parseBatchLine(JSON.stringify({ ...smallest, ...more }), lineNumber);

describe('reading a line', () => {
  it('needs six keys; an absent status is completed, all else null or false', () => {
    const line = parse({});
    expect(line).toMatchObject({
      status: 'completed',
      runId: null,
      reward: null,
      humanEdited: false,
      logprobKind: null,
      extra: {},
    });
    expect([...line.tokens.ids]).toEqual([5, 6, 7]);
    expect(line.tokens.policyLogprobs).toBeNull();
    for (const key of Object.keys(smallest))
      expect(() => parse({ [key]: undefined }, 12)).toThrow(`Line 12: ${key} is missing`);
  });

  it('reads null log-probabilities as NaN', () => {
    expect([...(parse({ logprobs: [null, -1, -0.25] }).tokens.logprobs ?? [])]).toEqual([Number.NaN, -1, -0.25]);
  });

  it('reads the bare NaN and Infinity that Python writes, and leaves such words in strings alone', () => {
    const text = JSON.stringify({ ...smallest, note: 'NaN, "Infinity" and \\' }).replace(
      /}$/,
      ',"ref_logprobs":[NaN,-Infinity,Infinity]}',
    );
    const line = parseBatchLine(text, 1);
    expect([...(line.tokens.refLogprobs ?? [])]).toEqual([Number.NaN, -Infinity, Infinity]);
    expect(line.extra).toEqual({ note: 'NaN, "Infinity" and \\' });
  });

  it('reads them beside texts of any length, and takes no longer for an open one', () => {
    const note = 'é"\\'.repeat(3_000_000);
    const text = JSON.stringify({ ...smallest, note }).replace(/}$/, ',"ref_logprobs":[NaN,NaN,-1]}');
    expect([...(parseBatchLine(text, 1).tokens.refLogprobs ?? [])]).toEqual([Number.NaN, Number.NaN, -1]);
    const started = performance.now();
    expect(() => parseBatchLine(`{"a":NaN,"b":"${'\\"'.repeat(200_000)}`, 1)).toThrow('Line 1 is not JSON');
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  it('keeps unknown keys as they came, even odd ones', () => {
    const line = parseBatchLine(
      JSON.stringify({ ...smallest, rating: { a: [1, null] } }).replace(/}$/, ',"__proto__":{"x":1}}'),
      1,
    );
    expect(JSON.stringify(line.extra)).toBe('{"rating":{"a":[1,null]},"__proto__":{"x":1}}');
  });

  it('refuses columns of other lengths, with the line', () => {
    expect(() => parse({ generation_mask: [0, 1] }, 7)).toThrow(
      'Line 7: generation_mask has 2 entries, but token_ids has 3.',
    );
    expect(() => parse({ policy_logprobs: [-1] }, 8)).toThrow('Line 8: policy_logprobs has 1 entries');
    expect(() => parse({ segment_kind: [] }, 9)).toThrow(/Line 9: segment_kind/);
  });

  it('refuses what is no batch line, with the line, key and what is right', () => {
    const wrong: [object, RegExp][] = [
      [{ generation_mask: [0, 1, 2] }, /generation_mask holds 2 at position 2; it must hold 0 or 1/],
      [{ generation_mask: [0, true, 1] }, /generation_mask holds true/],
      [{ token_ids: [1, 2.5, 3] }, /token_ids holds 2.5 at position 1/],
      [{ step_index: [-2, 0, 0] }, /step_index holds -2/],
      [{ step_rewards: [null] }, /step_rewards holds null/],
      [{ step_rewards: null }, /the trajectory is completed/],
      [{ status: 'done' }, /status is "done"; it must be one of completed/],
      [{ logprobs: [null, '1', 0] }, /logprobs holds "1" at position 1/],
      [{ segment_kind: ['user', 'thought', 'nonsense'] }, /segment_kind holds "nonsense"/],
      [{ group_id: 4 }, /group_id is 4; it must be text/],
      [{ human_edited: 1 }, /human_edited is 1/],
      [{ reward: '1' }, /reward is "1"/],
      [{ reward_components: { a: null } }, /under a/],
      [{ weight_versions: [{ version: 'w', start: 0, end: 4 }] }, /within the 3 tokens/],
    ];
    for (const [more, message] of wrong) expect(() => parse(more, 3)).toThrow(message);
    for (const text of ['', '{', '[]', 'null', '{"a":NaN', '"x"']) {
      expect(() => parseBatchLine(text, 41)).toThrow(Invalid);
      expect(() => parseBatchLine(text, 41)).toThrow(/^Line 41 is not/);
    }
  });

  it('lets a trajectory that failed have no rewards', () => {
    expect(parse({ status: 'failed', step_rewards: null }).stepRewards).toBeNull();
  });
});

const orNull = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });
const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
const logprob = fc.oneof(fc.double({ max: 0, noNaN: true, noDefaultInfinity: true }), fc.constant(Number.NaN));

const anyLine: fc.Arbitrary<BatchLine> = fc.nat({ max: 20 }).chain((n) => {
  const list = <T>(of: fc.Arbitrary<T>) => fc.array(of, { minLength: n, maxLength: n });
  const column = orNull(list(logprob).map((v) => Float64Array.from(v)));
  return fc.record({
    runId: orNull(fc.string()),
    groupId: fc.string(),
    taskId: orNull(fc.string({ unit: 'binary' })),
    trajectoryId: fc.string(),
    sequenceIndex: orNull(fc.nat()),
    skill: orNull(fc.string()),
    skillVersion: orNull(fc.nat()),
    backend: orNull(fc.string()),
    status: fc.constantFrom(...FINAL_TRAJECTORY_STATUSES),
    stepRewards: fc.array(finite),
    reward: orNull(finite),
    rewardComponents: orNull(fc.dictionary(fc.string(), finite)),
    stateKeys: orNull(fc.array(fc.string())),
    advantages: orNull(fc.array(finite)),
    weightVersions: orNull(fc.array(fc.string().map((version) => ({ version, start: 0, end: n })))),
    logprobKind: orNull(fc.constantFrom(...LOGPROB_KINDS)),
    truncated: fc.boolean(),
    humanEdited: fc.boolean(),
    approximate: fc.boolean(),
    tokens: fc.record({
      ids: list(fc.nat()).map((v) => Int32Array.from(v)),
      mask: list(fc.constantFrom(0, 1)).map((v) => Uint8Array.from(v)),
      stepIndex: list(fc.integer({ min: -1, max: 99 })).map((v) => Int32Array.from(v)),
      segment: orNull(list(fc.nat({ max: SEGMENT_KINDS.length - 1 })).map((v) => Uint8Array.from(v))),
      logprobs: column,
      policyLogprobs: column,
      refLogprobs: column,
    }),
    extra: fc.dictionary(
      fc.string().map((key) => `x-${key}`),
      fc.jsonValue() as fc.Arbitrary<null>,
    ),
  });
});

describe('writing a line and reading it back', () => {
  it('gives the same line', () => {
    fc.assert(
      fc.property(anyLine, (line) => {
        const text = serializeBatchLine(line);
        expect(text).not.toContain('\n');
        const back = parseBatchLine(text, 1);
        // JSON itself has no -0 and no prototype-less objects: compare what is written again.
        expect(serializeBatchLine(back)).toBe(text);
        expect(back.tokens).toEqual(line.tokens);
        expect(back.stepRewards?.map((r) => r + 0)).toEqual(line.stepRewards?.map((r) => r + 0));
      }),
    );
  });

  it('writes a stored sequence with its 32-bit numbers exact and every key of the format', () => {
    const sequence: TokenSequence = {
      index: 1,
      ids: Int32Array.of(1, 2),
      mask: Uint8Array.of(0, 1),
      stepIndex: Int32Array.of(-1, 0),
      segment: Uint8Array.of(0, 2),
      logprobs: Float32Array.of(Number.NaN, -0.1),
      bytes: new Uint8Array(0),
      byteEnds: Uint32Array.of(0, 0),
      weightVersions: [{ version: 'w1', start: 1, end: 2 }],
      policyLogprobs: null,
      refLogprobs: Float32Array.of(Number.NaN, -0.3),
    };
    const facts = {
      runId: 'r',
      groupId: 'g',
      taskId: 'k',
      trajectoryId: 't',
      skill: 's',
      skillVersion: 2,
      backend: 'b',
      status: 'truncated' as const,
      stepRewards: [1],
      reward: 1,
      rewardComponents: { exact: 1 },
      stateKeys: ['00'],
      advantages: null,
      humanEdited: false,
    };
    const text = serializeBatchLine(
      batchLine(sequence, facts, { logprobKind: 'raw', truncated: false, approximate: false }),
    );
    expect(Object.keys(JSON.parse(text) as object)).toEqual(
      (
        'run_id group_id task_id trajectory_id sequence_index skill skill_version backend status step_rewards reward reward_components ' +
        'state_keys advantages weight_versions logprob_kind truncated human_edited approximate token_ids generation_mask step_index ' +
        'segment_kind logprobs policy_logprobs ref_logprobs'
      ).split(' '),
    );
    expect(text).toContain(
      '"segment_kind":["system","thought"],"logprobs":[null,-0.10000000149011612],"policy_logprobs":null',
    );
    expect(parseBatchLine(text, 1).tokens.logprobs?.[1]).toBe(Math.fround(-0.1));
  });
});
