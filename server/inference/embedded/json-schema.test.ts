import { describe, expect, it } from 'vitest';
import { Invalid } from '../../core/errors';
import type { JsonObject } from '../../core/vocabulary';
import { grammarSchema } from './json-schema';

describe('a JSON Schema for a grammar', () => {
  it('keeps what a grammar can hold', () => {
    const schema: JsonObject = {
      type: 'object',
      description: 'a note',
      properties: {
        n: { type: 'integer' },
        kind: { enum: ['a', 'b'] },
        list: { type: 'array', items: { type: 'string', maxLength: 3 } },
      },
      required: ['n'],
    };
    expect(grammarSchema(schema)).toEqual({
      type: 'object',
      properties: {
        n: { type: 'integer' },
        kind: { enum: ['a', 'b'] },
        list: { type: 'array', items: { type: 'string', maxLength: 3 } },
      },
      additionalProperties: false,
    });
  });

  it('reads anyOf, several types and the empty schema as alternatives', () => {
    expect(grammarSchema({ anyOf: [{ type: 'null' }, { const: 4 }] })).toEqual({
      oneOf: [{ type: 'null' }, { enum: [4] }],
    });
    expect(grammarSchema({ type: ['string', 'array'], items: { type: 'null' }, maxLength: 2 })).toEqual({
      oneOf: [
        { type: 'string', maxLength: 2 },
        { type: 'array', items: { type: 'null' } },
      ],
    });
    expect((grammarSchema({}).oneOf as unknown[]).length).toBeGreaterThan(4);
  });

  it.each([
    [{ type: 'integer', minimum: 1 }, '#/minimum'],
    [{ type: 'object', properties: { a: { type: 'string', pattern: 'x' } } }, '#/properties/a/pattern'],
    [{ type: 'object', properties: {}, required: ['b'] }, '"b"'],
    [{ allOf: [{ type: 'string' }] }, 'type'],
    [{ enum: [{ a: 1 }] }, 'plain values'],
    [{ $ref: 'https://example.org/s' }, '#/$defs/'],
    [{ type: 'number', multipleOf: 2 }, 'multipleOf'],
  ] as [JsonObject, string][])('refuses %j and says where', (schema, where) => {
    expect(() => grammarSchema(schema)).toThrow(Invalid);
    expect(() => grammarSchema(schema)).toThrow(where);
  });
});
