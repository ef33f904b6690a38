/**
 * JSON Schema into the dialect that node-llama-cpp turns into a grammar. The library reads an unknown keyword as
 * "anything" or "null" without a word; here every keyword is either expressed or refused, so that what the grammar
 * lets through always fits the schema (where numbers allow more than a grammar can say, the schema is refused).
 */
import { Invalid } from '../../core/errors';
import type { Json, JsonObject } from '../../core/vocabulary';

const NOTES = [
  'title',
  'description',
  'default',
  'examples',
  '$schema',
  '$id',
  '$comment',
  'deprecated',
  'readOnly',
  'writeOnly',
];
const SCALARS = ['string', 'number', 'integer', 'boolean', 'null'];
const ANY: JsonObject[] = [
  ...SCALARS.filter((type) => type !== 'integer').map((type): JsonObject => ({ type })),
  { type: 'object', additionalProperties: true },
  { type: 'array' },
];
const OF_TYPE: Record<string, string[]> = {
  object: ['properties', 'required', 'additionalProperties', 'minProperties', 'maxProperties'],
  array: ['items', 'prefixItems', 'minItems', 'maxItems'],
  string: ['minLength', 'maxLength', 'format'],
};
const FORMATS = ['date-time', 'time', 'date'];

/** Throws Invalid, naming the place, for what no grammar of this backend can hold. Every listed property is written. */
export function grammarSchema(schema: JsonObject): JsonObject {
  return convert(schema, '#');
}

function convert(schema: Json | undefined, at: string): JsonObject {
  if (schema === true) return { oneOf: ANY };
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    throw refuse(at, 'is not a schema that can be written');
  const definitions = definitionsOf(schema, at);
  const keys = Object.keys(schema).filter((key) => !NOTES.includes(key) && key !== '$defs');
  const only = (...allowed: string[]) => {
    const other = keys.find((key) => !allowed.includes(key));
    if (other !== undefined) throw refuse(`${at}/${other}`, 'cannot be enforced while generating');
  };
  if (keys.includes('$ref')) {
    only('$ref');
    if (typeof schema.$ref !== 'string' || !schema.$ref.startsWith('#/$defs/'))
      throw refuse(`${at}/$ref`, 'must begin with #/$defs/');
    return { $ref: schema.$ref, ...definitions };
  }
  for (const key of ['oneOf', 'anyOf'] as const) {
    if (!keys.includes(key)) continue;
    only(key);
    return {
      oneOf: list(schema[key], `${at}/${key}`).map((branch, i) => convert(branch, `${at}/${key}/${i}`)),
      ...definitions,
    };
  }
  if (keys.includes('const') || keys.includes('enum')) {
    only('type', keys.includes('const') ? 'const' : 'enum');
    const values = keys.includes('const') ? [schema.const as Json] : list(schema.enum, `${at}/enum`);
    if (values.some((value) => typeof value === 'object' && value !== null))
      throw refuse(at, 'lists objects or arrays; only plain values can be enforced');
    return { enum: values };
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type;
    return { oneOf: types.map((type) => convert(pick(schema, String(type)), at)), ...definitions };
  }
  if (schema.type === undefined) {
    if (keys.length === 0) return { oneOf: ANY };
    const guess = Object.keys(OF_TYPE).find((type) => keys.every((key) => OF_TYPE[type]?.includes(key)));
    if (!guess) throw refuse(at, 'needs a "type"');
    return convert({ ...schema, type: guess }, at);
  }
  const type = String(schema.type);
  only('type', ...(OF_TYPE[type] ?? []));
  if (type === 'object') return { ...objectSchema(schema, at), ...definitions };
  if (type === 'array') return { ...arraySchema(schema, at), ...definitions };
  if (!SCALARS.includes(type)) throw refuse(`${at}/type`, `is ${JSON.stringify(schema.type)}, which is no JSON type`);
  if (schema.format !== undefined && !FORMATS.includes(String(schema.format)))
    throw refuse(`${at}/format`, `can only be ${FORMATS.join(', ')}`);
  return { ...pick(schema, type) };
}

function objectSchema(schema: JsonObject, at: string): JsonObject {
  const properties = (schema.properties ?? {}) as JsonObject;
  const missing = ((schema.required ?? []) as Json[]).find((name) => !(String(name) in properties));
  if (missing !== undefined)
    throw refuse(`${at}/required`, `names ${JSON.stringify(missing)}, which is not among the properties`);
  const open =
    schema.additionalProperties === undefined ? Object.keys(properties).length === 0 : schema.additionalProperties;
  return {
    ...pick(schema, 'object', ['minProperties', 'maxProperties']),
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, value]) => [name, convert(value, `${at}/properties/${name}`)]),
    ),
    additionalProperties: typeof open === 'boolean' ? open : convert(open, `${at}/additionalProperties`),
  };
}

function arraySchema(schema: JsonObject, at: string): JsonObject {
  const result = pick(schema, 'array', ['minItems', 'maxItems']);
  if (schema.items !== undefined && schema.items !== true) result.items = convert(schema.items, `${at}/items`);
  if (schema.prefixItems !== undefined)
    result.prefixItems = list(schema.prefixItems, `${at}/prefixItems`).map((item, i) =>
      convert(item, `${at}/prefixItems/${i}`),
    );
  return result;
}

function definitionsOf(schema: JsonObject, at: string): JsonObject {
  if (schema.$defs === undefined) return {};
  const entries = Object.entries(schema.$defs as JsonObject);
  return { $defs: Object.fromEntries(entries.map(([name, value]) => [name, convert(value, `${at}/$defs/${name}`)])) };
}

/** The schema with one type and only the keywords that go with it. */
function pick(schema: JsonObject, type: string, keys = OF_TYPE[type] ?? []): JsonObject {
  return { type, ...Object.fromEntries(Object.entries(schema).filter(([key]) => keys.includes(key))) };
}

function list(value: Json | undefined, at: string): Json[] {
  if (!Array.isArray(value) || value.length === 0) throw refuse(at, 'must be a list with at least one entry');
  return value;
}

function refuse(at: string, what: string): Invalid {
  return new Invalid(`The JSON Schema of the constraint cannot be used: ${at} ${what}.`, { at });
}
