import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { NotFound } from '../core/errors';
import { updateWeightsInput } from './backends/backend-inputs';
import { idSchema, parseInput } from './inputs';
import { scoreRunInput } from './scores/score-inputs';

function told(schema: z.ZodType, input: unknown): string {
  try {
    parseInput(schema, input);
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
  return 'taken';
}

describe('an input that is refused', () => {
  it('is told in plain words', () => {
    const weights = { name: 'lab', version: 'step-2' };
    const of = (input: object) => told(updateWeightsInput, { ...weights, ...input });
    expect(of({ source: { kind: 'checkpoint' } })).toBe('The field source.path is missing.');
    expect(of({ source: { kind: 'lora', path: 3 } })).toBe('The field source.path cannot be used: must be text.');
    expect(of({})).toBe('The field source is missing.');
    expect(of({ source: {} })).toBe('The field source.kind is missing.');
    expect(of({ source: { kind: 'tape' } })).toMatch(/^The field source.kind cannot be used: /);
    expect(told(updateWeightsInput, undefined)).toBe('The input is missing.');
    const inFlight = of({ source: { kind: 'external' }, inFlight: 'now' });
    expect(inFlight).toBe('The field inFlight cannot be used: must be one of drain, interrupt.');
  });

  it('is never told in the words of the validator', () => {
    const schema = z.strictObject({
      text: z.string().min(2).max(3).optional(),
      count: z.number().int().min(1).max(5).optional(),
      list: z.array(z.boolean()).min(1).max(2).optional(),
      form: z.union([z.string(), z.number()]).optional(),
      url: z.url().optional(),
    });
    const wrong = [
      { text: 'a' },
      { text: 'abcd' },
      { count: 0 },
      { count: 9 },
      { count: 1.5 },
      { count: Number.NaN },
      { list: [] },
      { list: [true, true, true] },
      { list: [1] },
      { list: {} },
      { form: true },
      { url: 'x' },
      { more: 1 },
      [],
      3,
    ];
    for (const input of wrong) {
      expect(told(schema, input)).toMatch(/^The (field|input) /);
      expect(told(schema, input)).not.toMatch(/Invalid|expected|received|Too |Unrecognized|taken|undefined/);
    }
  });

  it('of a name that nothing can have is a thing that is not there', () => {
    const asked = () => parseInput(scoreRunInput, { runId: 'nope', as: 'ref', backend: 'lab' });
    expect(asked).toThrow(NotFound);
    expect(asked).toThrow('There is no run called nope.');
    expect(told(idSchema('run'), 'x'.repeat(200))).toBe(`There is no run called ${'x'.repeat(80)}….`);
    expect(told(idSchema('run'), 7)).toBe('The input cannot be used: must be text.');
  });
});
