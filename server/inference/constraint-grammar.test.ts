import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { getLlama, type Llama, type LlamaModel } from 'node-llama-cpp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Invalid } from '../core/errors';
import { constraintGrammar, type RegularConstraint } from './constraint-grammar';
import { writeTinyModel } from './testing/tiny-model';

let folder: string;
let llama: Llama;
let model: LlamaModel;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grammar-'));
  await writeTinyModel(join(folder, 'tiny.gguf'));
  llama = await getLlama({ gpu: false, build: 'never' });
  model = await llama.loadModel({ modelPath: join(folder, 'tiny.gguf') });
}, 60_000);
afterAll(async () => {
  await model?.dispose();
  await llama?.dispose();
  await rm(folder, { recursive: true, force: true });
});

/** llama.cpp itself says which texts a grammar lets through: a token at a time, then the end. */
class Matcher {
  readonly #grammar: Promise<{ _grammar: unknown }>;

  constructor(constraint: RegularConstraint) {
    this.#grammar = llama.createGrammar({ grammar: constraintGrammar(constraint) }) as never;
  }

  async accepts(text: string): Promise<boolean> {
    const { _bindings: bindings } = llama as unknown as {
      _bindings: {
        AddonGrammarEvaluationState: new (model: unknown, grammar: unknown) => object;
        AddonSampler: {
          acceptGrammarEvaluationStateToken(state: object, token: number): void;
          canBeNextTokenForGrammarEvaluationState(state: object, token: number): boolean;
        };
      };
    };
    const native = (model as unknown as { _model: unknown })._model;
    const state = new bindings.AddonGrammarEvaluationState(native, (await this.#grammar)._grammar);
    for (const token of model.tokenize(text, false)) {
      if (!bindings.AddonSampler.canBeNextTokenForGrammarEvaluationState(state, token)) return false;
      bindings.AddonSampler.acceptGrammarEvaluationStateToken(state, token);
    }
    return bindings.AddonSampler.canBeNextTokenForGrammarEvaluationState(state, model.tokens.eos ?? -1);
  }
}

const grammarOf = (pattern: string) => constraintGrammar({ kind: 'regex', pattern });

/** Random expressions of the common part. Repeats are small, so that texts and grammars stay small. */
const expressions = (leastParts: number) =>
  fc.letrec<{ whole: string; sequence: string; repeated: string; atom: string }>((tie) => ({
    whole: fc.array(tie('sequence'), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('|')),
    sequence: fc.array(tie('repeated'), { minLength: leastParts, maxLength: 4 }).map((parts) => parts.join('')),
    repeated: fc
      .tuple(tie('atom'), fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{0,2}', '{1,}', '{0}', '??', '*?'))
      .map((parts) => parts.join('')),
    atom: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(
        'a',
        'b',
        '0',
        'é',
        '数',
        '🌊',
        '\\.',
        '\\\\',
        '\\n',
        '\\x41',
        '\\u00e9',
        '\\u{1f30a}',
        '\\ud83c\\udf0a',
        '-',
        '"',
      ),
      fc.constantFrom(
        '.',
        '\\d',
        '\\D',
        '\\w',
        '\\W',
        '\\s',
        '\\S',
        '[ab]',
        '[^ab]',
        '[a-c0]',
        '[\\d_-]',
        '[^\\W]',
        '[\\]^\\\\]',
        '[é-數]',
      ),
      tie('whole').map((inside) => `(${inside})`),
      tie('whole').map((inside) => `(?:${inside})`),
      tie('sequence')
        .map((inside) => `(?<name>${inside})`)
        .filter((group) => !group.slice(3).includes('(?<name>')),
    ),
  }));
const texts = fc.array(
  fc.constantFrom('a', 'b', 'c', 'A', '0', '9', '_', ' ', '\n', '-', '.', '\\', '"', 'é', '数', '🌊', ']', '^'),
  { maxLength: 5 },
);

describe('a regular expression as a grammar', { timeout: 120_000 }, () => {
  it('lets through what the expression matches, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(
        expressions(0).whole,
        fc.array(texts, { minLength: 5, maxLength: 5 }),
        async (pattern, tried) => {
          fc.pre(compiles(pattern));
          const matches = new RegExp(`^(?:${pattern})$`, 'u');
          const matcher = new Matcher({ kind: 'regex', pattern });
          for (const parts of tried) {
            const text = parts.join('');
            expect([pattern, text, await matcher.accepts(text)]).toEqual([pattern, text, matches.test(text)]);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  // fast-check makes no texts from an expression with an empty part.
  it('lets through every text made from the expression', async () => {
    await fc.assert(
      fc.asyncProperty(expressions(1).whole, fc.nat(), async (pattern, seed) => {
        fc.pre(compiles(pattern));
        const matcher = new Matcher({ kind: 'regex', pattern });
        const matching = fc.stringMatching(new RegExp(`^(?:${pattern})$`, 'u'), { maxLength: 20 });
        for (const text of fc.sample(matching, { numRuns: 3, seed }))
          if (isText(text)) expect([pattern, text, await matcher.accepts(text)]).toEqual([pattern, text, true]);
      }),
      { numRuns: 200 },
    );
  });

  it.each([
    ['^\\d{3}-\\d{4}$', ['555-1234'], ['555-123', '5555-1234', 'x555-1234', '']],
    ['^a|b$', ['a', 'b'], ['ab', '^a']],
    ['(a?){3}', ['', 'a', 'aaa'], ['aaaa']],
    ['((a*)*b?)+', ['', 'aab', 'baab'], ['c']],
    ['(|a|(b|)){2,}', ['', 'ab', 'bbbb'], ['c']],
    ['', [''], ['a']],
    ['[\\b]', ['\b'], ['b']],
    ['.', ['x', '🌊'], ['\n', '\u2028', '']],
    ['\\s', [' ', '\u00a0', '\u3000'], ['a', '\u200b']],
  ])('reads %s', async (pattern, allowed, refused) => {
    const matcher = new Matcher({ kind: 'regex', pattern });
    for (const text of allowed) expect([text, await matcher.accepts(text)]).toEqual([text, true]);
    for (const text of refused) expect([text, await matcher.accepts(text)]).toEqual([text, false]);
  });

  it.each([
    ['a(?=b)', 'a look-ahead'],
    ['(?<!a)b', 'a look-behind'],
    ['(a)\\1', 'a reference to a group'],
    ['(?<n>a)\\k<n>', 'a reference to a group'],
    ['\\bword\\b', 'a word boundary'],
    ['\\p{L}+', 'a Unicode property'],
    ['a^b', 'an anchor ^ that is not at the beginning'],
    ['(a$)b', 'an anchor $ that is not at the end'],
    ['a{1001}', 'the repetition {1001}'],
    ['\\0', 'the character U+0000'],
    ['[^\\s\\S]', 'a class that holds no character'],
    ['\\ud83c', 'half of a character'],
    ['(a', 'cannot be read'],
    ['a**', 'cannot be read'],
    [`${'('.repeat(101)}a${')'.repeat(101)}`, 'groups more than 100 deep'],
  ])('refuses %s and says why', (pattern, why) => {
    expect(() => grammarOf(pattern)).toThrow(Invalid);
    expect(() => grammarOf(pattern)).toThrow(why);
  });
});

it('refuses an expression that becomes an endless grammar', () => {
  expect(() => grammarOf('(x?y?z?)*'.repeat(20_000))).toThrow('the most is 200000');
});

describe('choices as a grammar', { timeout: 60_000 }, () => {
  it('lets through each choice as it is written and nothing else', async () => {
    const anyText = fc.string({ unit: 'grapheme', maxLength: 6 }).filter((text) => !text.includes('\0'));
    await fc.assert(
      fc.asyncProperty(fc.array(anyText, { minLength: 1, maxLength: 4 }), anyText, async (choices, other) => {
        const matcher = new Matcher({ kind: 'choice', choices });
        for (const choice of choices) expect([choice, await matcher.accepts(choice)]).toEqual([choice, true]);
        expect([other, await matcher.accepts(other)]).toEqual([other, choices.includes(other)]);
      }),
      { numRuns: 100 },
    );
  });

  it('refuses an empty list', () => {
    expect(() => constraintGrammar({ kind: 'choice', choices: [] })).toThrow('at least one is needed');
  });
});

function compiles(pattern: string): boolean {
  try {
    new RegExp(`^(?:${pattern})$`, 'u');
    return true;
  } catch {
    return false;
  }
}

/** No U+0000 and no half of a character. */
function isText(text: string): boolean {
  return !/[\0\p{Cs}]/u.test(text);
}
