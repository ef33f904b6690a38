/** A model under the grammar can only write turns that parse: shown by writing at random whatever the grammar allows. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../ambient';
import { Invalid } from '../errors';
import type { Skill } from '../skills/skill';
import type { JsonObject } from '../vocabulary';
import { formatNamed } from './formats';
import { turnGrammar } from './grammar';
import type { PromptTool } from './prompt';
import { parseReact } from './react';

const skillWith = (requiredFields: string[]): Skill => ({ answerFormat: { requiredFields } }) as Skill;
const tool = (name: string, properties: JsonObject, required = Object.keys(properties)): PromptTool => ({
  name,
  description: '',
  parameters: { type: 'object', properties, required },
});

const TOOLS: PromptTool[] = [
  tool('probe', { n: { type: 'integer' } }),
  tool('quote "it" \\ now', { text: { type: 'string' }, kind: { enum: ['a', 'b"c', 3, null] } }),
  tool('mixed', {
    list: { type: 'array', items: { type: 'number' } },
    nested: {
      type: 'object',
      properties: { deep: { type: 'boolean' }, skipped: { type: 'string' } },
      required: ['deep'],
    },
  }),
  tool('optional only', { maybe: { type: 'string' } }, []),
];

/** Writes one text of a GBNF grammar. Reads the part of the notation that llama.cpp documents and the product uses. */
function writeFrom(grammar: string, random: () => number): string {
  const rules = new Map(
    grammar
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' ::= ', 2) as [string, string])
      .map(([name]) => [name, grammar.slice(grammar.indexOf(`${name} ::= `) + name.length + 5).split('\n')[0] ?? '']),
  );
  const pick = (n: number): number => Math.floor(random() * n);
  const write = (body: string): string => {
    let at = 0;
    const space = (): void => {
      while (body[at] === ' ') at++;
    };
    const character = (): number => {
      if (body[at] !== '\\') {
        const code = body.codePointAt(at) ?? 0;
        at += code > 0xffff ? 2 : 1;
        return code;
      }
      const escaped = body[at + 1] ?? '';
      if (escaped === 'x') {
        at += 4;
        return Number.parseInt(body.slice(at - 2, at), 16);
      }
      at += 2;
      return (escaped === 'n' ? '\n' : escaped === 't' ? '\t' : escaped === 'r' ? '\r' : escaped).charCodeAt(0);
    };
    const item = (): (() => string) => {
      if (body[at] === '"') {
        at++;
        let text = '';
        while (body[at] !== '"') text += String.fromCodePoint(character());
        at++;
        return () => text;
      }
      if (body[at] === '[') {
        at++;
        const not = body[at] === '^';
        if (not) at++;
        const ranges: [number, number][] = [];
        while (body[at] !== ']') {
          const from = character();
          let to = from;
          if (body[at] === '-' && body[at + 1] !== ']') {
            at++;
            to = character();
          }
          ranges.push([from, to]);
        }
        at++;
        const inside = (code: number): boolean => ranges.some(([from, to]) => code >= from && code <= to);
        return () => {
          for (;;) {
            const [from, to] = not ? ([0, 0x2ff] as const) : (ranges[pick(ranges.length)] as [number, number]);
            const code = from + pick(to - from + 1);
            if (inside(code) !== not) return String.fromCodePoint(code);
          }
        };
      }
      if (body[at] === '(') {
        at++;
        const inner = alternatives();
        at++;
        return inner;
      }
      const [name = ''] = /^[a-z0-9-]+/.exec(body.slice(at)) ?? [];
      const rule = rules.get(name);
      if (rule === undefined) throw new Error(`no rule at ${JSON.stringify(body.slice(at))}`);
      at += name.length;
      return () => write(rule);
    };
    const repeated = (): (() => string) => {
      const one = item();
      const [whole, least, most] = /^\{(\d+),(\d+)\}/.exec(body.slice(at)) ?? [body[at] === '?' ? '?' : '', '0', '1'];
      if (!whole) return one;
      at += whole.length;
      const [low, high] = [Number(least), Math.min(Number(most), Number(least) + 6)];
      return () => Array.from({ length: low + pick(high - low + 1) }, one).join('');
    };
    const alternatives = (): (() => string) => {
      const choices: (() => string)[][] = [[]];
      for (space(); at < body.length && body[at] !== ')'; space()) {
        if (body[at] === '|') {
          at++;
          choices.push([]);
        } else choices.at(-1)?.push(repeated());
      }
      return () => (choices[pick(choices.length)] ?? []).map((part) => part()).join('');
    };
    return alternatives()();
  };
  return write(rules.get('root') ?? '');
}

describe('the grammar of a turn', () => {
  const byName = new Map(TOOLS.map((t) => [t.name, t]));

  it('allows only turns that parse, with the arguments a tool requires, or the answer with its fields', () => {
    const fields = ['number', 'with "quotes"'];
    const grammar = turnGrammar(skillWith(fields), TOOLS);
    const used = new Set<string>();
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 }), (seed) => {
        const text = writeFrom(grammar, seededRandom(seed));
        const stopped = text.endsWith('\nObservation:');
        const said = stopped ? text.slice(0, -'Observation:'.length) : text;
        const turn = parseReact(new TextEncoder().encode(said), stopped ? 'stop' : null);
        expect(turn.problem, text).toBeNull();
        if (turn.answer) {
          expect(stopped).toBe(false);
          expect(Object.keys(turn.answer)).toEqual(fields);
          return;
        }
        expect(stopped).toBe(true);
        expect(turn.calls, text).toHaveLength(1);
        const [call] = turn.calls;
        expect(call?.error).toBeNull();
        used.add(call?.tool ?? '');
        expect(Object.keys(call?.arguments ?? {})).toEqual(byName.get(call?.tool ?? '')?.parameters.required);
      }),
      { numRuns: 400 },
    );
    expect([...used].sort()).toEqual([...byName.keys()].sort());
  });

  it('of a skill without tools allows the answer alone', () => {
    const grammar = turnGrammar(skillWith(['number']), []);
    expect(grammar).not.toContain('call');
    for (let seed = 0; seed < 50; seed++)
      expect(
        Object.keys(parseReact(new TextEncoder().encode(writeFrom(grammar, seededRandom(seed))), null).answer ?? {}),
      ).toEqual(['number']);
  });

  for (const format of ['hermes', 'llama3', 'mistral'] as const)
    for (const startsInThought of [false, true])
      it(`of the form ${format} allows only one call that parses${startsInThought ? ', in a turn that begins in thought' : ''}`, () => {
        const fields = ['number', 'why'];
        const tools = TOOLS.filter(({ name }) => /^\w+$/.test(name));
        const { grammar } = formatNamed(format).constraints(skillWith(fields), tools, startsInThought);
        const used = new Set<string>();
        for (let seed = 0; seed < 300; seed++) {
          const text = writeFrom(grammar ?? '', seededRandom(seed));
          const end = { finishReason: 'eos' as const, stopString: null, startsInThought };
          const turn = formatNamed(format).parse(new TextEncoder().encode(text), end);
          expect(turn.problem, text).toBeNull();
          if (turn.answer) {
            expect(Object.keys(turn.answer)).toEqual(fields);
            expect(turn.calls).toEqual([]);
            continue;
          }
          expect(turn.calls, text).toHaveLength(1);
          const [call] = turn.calls;
          expect(call?.error, text).toBeNull();
          used.add(call?.tool ?? '');
          expect(Object.keys(call?.arguments ?? {})).toEqual(byName.get(call?.tool ?? '')?.parameters.required);
        }
        expect(used.size).toBe(tools.length);
      });

  it('refuses a schema it cannot express instead of leaving an argument free', () => {
    expect(() => turnGrammar(skillWith([]), [tool('t', { x: { anyOf: [{ type: 'string' }] } })])).toThrow(Invalid);
    expect(() => turnGrammar(skillWith([]), [tool('t', { x: { type: 'array' } })])).toThrow(Invalid);
  });
});
