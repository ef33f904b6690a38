import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Invalid } from '../errors';
import { findSkillProblems, parseSkill } from './parse';
import { compilePattern } from './pattern';

const known = {
  tools: ['CLEAN', 'mmseqs2', 'UniProt_API', 'probe'],
  scorers: ['tool_accuracy', 'answer_f1', 'reasoning_quality', 'exact'],
};

const enzyme = `skill_name: enzyme_catalysis
description: Assign an EC number and the reaction to a protein sequence.
available_tools: [CLEAN, mmseqs2, UniProt_API]
max_rounds: 8
answer_format:
  required_fields: ["ec_number", "substrate", "product"]
audit_rules:
  - field: "ec_number"
    pattern: "^\\\\d+\\\\.\\\\d+\\\\.\\\\d+\\\\.\\\\d+$"
reward_weights:
  tool_accuracy: 0.3
  answer_f1: 0.4
  reasoning_quality: 0.3
`;

const problemsOf = (yaml: string) => findSkillProblems(yaml, known);
const changed = (from: string | RegExp, to: string) => {
  const yaml = enzyme.replace(from, to);
  if (yaml === enzyme) throw new Error('nothing was changed');
  return yaml;
};

describe('a skill', () => {
  it('means what its keys say and has defaults for the rest', () => {
    expect(parseSkill(enzyme, known)).toEqual({
      skillName: 'enzyme_catalysis',
      description: 'Assign an EC number and the reaction to a protein sequence.',
      availableTools: ['CLEAN', 'mmseqs2', 'UniProt_API'],
      maxRounds: 8,
      answerFormat: { requiredFields: ['ec_number', 'substrate', 'product'] },
      auditRules: [{ field: 'ec_number', pattern: '^\\d+\\.\\d+\\.\\d+\\.\\d+$' }],
      rewardWeights: { tool_accuracy: 0.3, answer_f1: 0.4, reasoning_quality: 0.3 },
      instructions: '',
      actionFormat: 'react',
      constrainActions: false,
      sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, maxTokensPerTurn: 512 },
      stop: null,
      sandbox: { level: 'process', accept: ['process', 'container', 'vm'] },
      permissions: { defaultLevel: 'ask_first', rules: [] },
      maxObservationTokens: 1024,
      deadlineMs: 600_000,
      extra: {},
    });
  });

  it('takes its optional keys and keeps unknown ones', () => {
    const skill = parseSkill(
      `${enzyme}sampling: {temperature: 0.6}
sandbox: {level: wasm, accept: [process]}
permissions:
  default_level: manual_only
  expires_at: 2027-01-31T12:00:00Z
  rules:
    - {resource: 'tool://*', level: full_trust}
    - {resource: 'file:///tmp/*', level: approve_once, actions: [read], conditions: {max_size_mb: 5}}
memory: {long_term: true}
`,
      known,
    );
    expect(skill.sampling).toEqual({ temperature: 0.6, topP: 1, topK: 0, minP: 0, maxTokensPerTurn: 512 });
    expect(skill.sandbox).toEqual({ level: 'wasm', accept: ['wasm', 'process'] });
    expect(skill.permissions).toEqual({
      defaultLevel: 'manual_only',
      expiresAtMs: Date.UTC(2027, 0, 31, 12),
      rules: [
        { resource: 'tool://*', level: 'full_trust', actions: ['execute'], conditions: {} },
        { resource: 'file:///tmp/*', level: 'approve_once', actions: ['read'], conditions: { max_size_mb: 5 } },
      ],
    });
    expect(skill.extra).toEqual({ memory: { long_term: true } });
  });
});

describe('problems of a skill', () => {
  const cases: [string, string, number, number, RegExp][] = [
    [
      'weights that do not sum to 1',
      changed('answer_f1: 0.4', 'answer_f1: 0.5'),
      10,
      1,
      /^reward_weights sum to 1.1; they must sum to 1\.$/,
    ],
    [
      'a weight below 0',
      changed('answer_f1: 0.4', 'answer_f1: -0.4'),
      12,
      14,
      /^reward_weights.answer_f1 must be at least 0\.$/,
    ],
    [
      'a scorer nobody knows',
      changed('answer_f1:', 'answer_f2:'),
      12,
      14,
      /^reward_weights.answer_f2 is not a scorer; the scorers are tool_accuracy/,
    ],
    [
      'a tool that does not exist',
      changed('mmseqs2', 'mmseqs3'),
      3,
      26,
      /names the tool "mmseqs3", which does not exist; the tools are CLEAN/,
    ],
    [
      'a pattern that does not compile',
      changed('^\\\\d+\\\\.', '(^\\\\d+\\\\.'),
      9,
      14,
      /^audit_rules\[0\].pattern cannot be used: error parsing regexp: missing closing \)/,
    ],
    [
      'a pattern that cannot run in linear time',
      changed('"^\\\\d+', '"(?=x)^\\\\d+'),
      9,
      14,
      /^audit_rules\[0\].pattern cannot be used/,
    ],
    ['a missing key', changed('max_rounds: 8\n', ''), 1, 1, /^max_rounds is missing\.$/],
    [
      'a missing key deeper down',
      changed('    pattern:', '    motif:'),
      8,
      5,
      /^audit_rules\[0\].pattern is missing\.$/,
    ],
    [
      'a value of the wrong type',
      changed('max_rounds: 8', 'max_rounds: "8"'),
      4,
      13,
      /^max_rounds must be a whole number\.$/,
    ],
    ['too few rounds', changed('max_rounds: 8', 'max_rounds: 0'), 4, 13, /at least 1/],
    [
      'a key that an inner part does not have',
      `${enzyme}sampling:\n  temprature: 1\n`,
      15,
      15,
      /^sampling.temprature is not a key of this part\.$/,
    ],
    [
      'an unknown level',
      `${enzyme}sandbox: {level: prison}\n`,
      14,
      18,
      /^sandbox.level must be one of none, wasm, process, container, vm\.$/,
    ],
    ['broken YAML', changed('[CLEAN, mmseqs2, UniProt_API]', '[CLEAN, mmseqs2'), 4, 1, /.+/],
    ['a key given twice', `${enzyme}max_rounds: 9\n`, 14, 1, /unique/],
    ['no mapping at all', 'just words', 1, 1, /^The skill must be a mapping/],
    ['an empty text', '', 1, 1, /^The skill must be a mapping/],
    [
      'fields that are missing for answer_f1',
      changed('["ec_number", "substrate", "product"]', '[]'),
      6,
      3,
      /must name a field/,
    ],
    ['a name that is a path', changed('enzyme_catalysis', '../x'), 1, 13, /^skill_name must not hold slashes/],
  ];
  for (const [what, yaml, line, column, message] of cases)
    it(`name line and column of ${what}`, () => {
      const problem = problemsOf(yaml).find((found) => message.test(found.message));
      expect(problem, JSON.stringify(problemsOf(yaml))).toMatchObject({ line, column });
    });

  it('come all at once, in the order of the text, in the error and in its message', () => {
    const yaml = changed('CLEAN', 'DIRTY').replace('0.4', '0.9');
    expect(problemsOf(yaml)).toHaveLength(2);
    try {
      parseSkill(yaml, known);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(Invalid);
      const { message, details } = error as Invalid;
      expect(details.problems).toEqual(problemsOf(yaml));
      expect(message.split('\n')).toHaveLength(2);
      expect(message).toMatch(/^Line 3, column 19: available_tools\[0\] names the tool "DIRTY"/);
    }
  });

  it('include an alias bomb, instead of hanging on it', () => {
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...'bcdefghi'.split('').map((c, i) => `${c}: &${c} [${`*${'abcdefgh'[i]},`.repeat(9)}]`),
    ].join('\n');
    expect(problemsOf(`${bomb}\n${enzyme}`)[0]?.message).toMatch(/alias/i);
  });

  it('are found in any text without throwing', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.nat({ max: enzyme.length }).map((at) => `${enzyme.slice(0, at)}: [${enzyme.slice(at)}`),
        ),
        (yaml) => {
          for (const problem of problemsOf(yaml)) {
            expect(problem.line).toBeGreaterThan(0);
            expect(problem.column).toBeGreaterThan(0);
          }
        },
      ),
    );
  });
});

describe('a pattern', () => {
  it('is looked for anywhere unless it is anchored', () => {
    expect(compilePattern('b+').test('abbc')).toBe(true);
    expect(compilePattern('^b+$').test('abbc')).toBe(false);
    expect(compilePattern('^\\d+$').test('12\n')).toBe(false);
  });

  it('runs in linear time where a backtracking engine would not end', () => {
    expect(compilePattern('^(a+)+$').test(`${'a'.repeat(50_000)}b`)).toBe(false);
  });
});
