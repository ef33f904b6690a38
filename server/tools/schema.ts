/** Checks arguments against a tool's JSON Schema. Nothing is coerced, nothing unknown is let through. */
import Ajv, { type ErrorObject, type ValidateFunction } from 'ajv';
import { Invalid } from '../core/errors';
import type { Json, JsonObject } from '../core/vocabulary';

/** Of a value, in a message for the model. */
const SHOWN_CHARACTERS = 60;

/**
 * A function that gives null for arguments that fit, else one sentence with the path and what is right.
 * Throws Invalid when the schema is none.
 */
export function argumentCheck(schema: JsonObject): (args: JsonObject) => string | null {
  const ajv = new Ajv({ strict: false, coerceTypes: false, useDefaults: false, allErrors: false, verbose: true });
  let validate: ValidateFunction;
  try {
    validate = ajv.compile({ additionalProperties: false, ...schema });
  } catch (error) {
    throw new Invalid(`The JSON Schema of the tool's arguments cannot be used: ${(error as Error).message}.`);
  }
  return (args) => {
    if (validate(args)) return null;
    const error = validate.errors?.[0];
    return error ? sentence(error) : 'The arguments do not fit the schema.';
  };
}

function sentence(error: ErrorObject): string {
  const place = error.instancePath === '' ? 'arguments' : `argument ${dotted(error.instancePath)}`;
  const prefix = error.instancePath === '' ? '' : `${dotted(error.instancePath)}.`;
  const got = shown(error.data as Json | undefined);
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'type':
      return `${place}: expected ${[params.type].flat().join(' or ')}, got ${got}`;
    case 'required':
      return `argument ${prefix}${params.missingProperty}: expected ${expectedOf(error)}, but it is missing`;
    case 'additionalProperties':
      return `argument ${prefix}${params.additionalProperty}: the tool has no such argument; it takes ${known(error)}`;
    case 'enum':
      return `${place}: expected one of ${JSON.stringify(params.allowedValues)}, got ${got}`;
    case 'const':
      return `${place}: expected ${JSON.stringify(params.allowedValue)}, got ${got}`;
    default:
      return `${place}: ${error.message ?? 'does not fit the schema'}, got ${got}`;
  }
}

/** `/points/0/x~1y` → `points[0].x/y`. */
function dotted(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path ? `${path}.${part}` : part), '');
}

/** Type and value, as in `string "5"`. */
function shown(value: Json | undefined): string {
  const text = JSON.stringify(value) ?? 'nothing';
  const short =
    text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}… (${text.length} characters)` : text;
  if (value === null) return 'null';
  if (Array.isArray(value)) return `array ${short}`;
  return `${typeof value} ${short}`;
}

function expectedOf(error: ErrorObject): string {
  const properties =
    (error.parentSchema as { properties?: Record<string, { type?: string | string[] }> }).properties ?? {};
  const type = properties[(error.params as { missingProperty: string }).missingProperty]?.type;
  return type === undefined ? 'a value' : [type].flat().join(' or ');
}

function known(error: ErrorObject): string {
  const names = Object.keys((error.parentSchema as { properties?: object }).properties ?? {});
  return names.length > 0 ? names.join(', ') : 'no arguments';
}
