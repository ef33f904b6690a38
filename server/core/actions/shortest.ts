/** The shortest JSON that fits a schema: what a call costs at least. An estimate from below for schemas with more to them. */
import type { Json, JsonObject } from '../vocabulary';
import { isObject } from './read-object';

const DEEPEST = 16;

export function shortestValue(schema: JsonObject, depth = 0): Json {
  if (Array.isArray(schema.enum)) return shortestOf(schema.enum);
  if (schema.const !== undefined) return schema.const;
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case 'string':
      return 'x'.repeat(typeof schema.minLength === 'number' ? Math.min(schema.minLength, 10_000) : 0);
    case 'boolean':
      return true;
    case 'array':
      return [];
    case 'object': {
      const properties = isObject(schema.properties) ? schema.properties : {};
      const required = Array.isArray(schema.required) ? schema.required : [];
      return Object.fromEntries(
        Object.entries(properties).flatMap(([key, value]) =>
          required.includes(key)
            ? [[key, isObject(value) && depth < DEEPEST ? shortestValue(value, depth + 1) : 0]]
            : [],
        ),
      );
    }
    default:
      return 0;
  }
}

function shortestOf(values: Json[]): Json {
  const sized = values.map((value) => ({ value, size: JSON.stringify(value).length }));
  return sized.sort((a, b) => a.size - b.size)[0]?.value ?? null;
}
