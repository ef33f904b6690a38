/**
 * Whether a text is one that a constraint allows, or the beginning of one. Some servers take the field of a constraint
 * and ignore it with status 200; their first answers are held against it here.
 */
import Ajv from 'ajv';
import { RE2JS } from 're2js';
import type { JsonObject } from '../../core/vocabulary';
import type { Constraint } from '../backend';
import { parseGbnf } from './gbnf';
import { type Match, matchGrammar } from './grammar-match';
import { readPartialJson } from './partial-json';
import { matchRegex } from './regex-prefix';

/** `unknown`: the constraint itself cannot be read here, so nothing is said. */
export type ConstraintVerdict = 'fits' | 'broken' | 'unknown';

/**
 * @param bytes of the answer, without an end-of-turn token
 * @param cut the answer was ended by the token limit or a stop string, so a beginning is enough
 */
export function checkConstraint(constraint: Constraint, bytes: Uint8Array, cut: boolean): ConstraintVerdict {
  // A character that was cut in the middle is left out.
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: cut });
  const match = matchOf(constraint, text);
  if (match === null) return 'unknown';
  return match === 'whole' || (match === 'prefix' && cut) ? 'fits' : 'broken';
}

function matchOf(constraint: Constraint, text: string): Match | null {
  try {
    switch (constraint.kind) {
      case 'choice':
        return matchChoice(constraint.choices, text);
      case 'regex':
        return matchRegex(RE2JS.compile(constraint.pattern, RE2JS.DOTALL), text);
      case 'grammar':
        return matchGrammar(parseGbnf(constraint.grammar), text);
      case 'json_schema':
        return matchSchema(constraint.schema, text);
    }
  } catch {
    // A schema, pattern or grammar that is not understood here; the server is the one to refuse it.
    return null;
  }
}

function matchChoice(choices: string[], text: string): Match {
  if (choices.includes(text)) return 'whole';
  return choices.some((choice) => choice.startsWith(text)) ? 'prefix' : 'none';
}

function matchSchema(schema: JsonObject, text: string): Match {
  const parsed = readPartialJson(text);
  if (parsed.state === 'broken') return 'none';
  // Which draft a schema names makes no difference to what is held against it here.
  const { $schema: _, $id: __, ...rest } = schema;
  const validate = new Ajv({ strict: false, validateFormats: false, allErrors: true }).compile(rest);
  if (parsed.state === 'prefix' && parsed.value === undefined) return 'prefix';
  if (validate(parsed.value)) return parsed.state;
  if (parsed.state === 'whole') return 'none';
  const errors = (validate.errors ?? []).map((error) => error.keyword);
  const mayFit = errors.some((word) => ALTERNATIVES.has(word)) || errors.every((word) => STILL_MISSING.has(word));
  return mayFit ? 'prefix' : 'none';
}

/** A branch of these fails already for what is not there yet. */
const ALTERNATIVES = new Set(['anyOf', 'oneOf', 'not', 'if', 'contains']);
const STILL_MISSING = new Set(['required', 'minItems', 'minProperties', 'minContains', 'dependentRequired']);
