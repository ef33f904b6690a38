/**
 * A grammar (GBNF, llama.cpp's form) that lets a model write only turns that parse: a thought, then one action with
 * arguments that fit the tool's schema, or the answer.
 */

import { Invalid } from '../errors';
import type { Skill } from '../skills/skill';
import type { Json, JsonObject } from '../vocabulary';
import type { PromptTool } from './prompt';

/** Longest thought and longest string, in characters: a small model under a grammar would otherwise never stop. */
const THOUGHT_CHARS = 160;
const STRING_CHARS = 200;

export function turnGrammar(skill: Skill, tools: PromptTool[]): string {
  const rules = new Map<string, string>();
  const calls = tools.map((tool, i) => {
    const args = schemaRule(tool.parameters, `tool${i}`, rules);
    rules.set(`call${i}`, `${literal(`{"tool": ${JSON.stringify(tool.name)}, "args": `)} ${args} "}"`);
    return `call${i}`;
  });
  const fields = skill.answerFormat.requiredFields.map((field) => `${literal(`${JSON.stringify(field)}: `)} scalar`);
  const lines = [
    `root ::= "Thought: " [^\\n\\x00-\\x1f]{1,${THOUGHT_CHARS}} "\\n" ( ${calls.length ? '"Action: " call "\\nObservation:" | ' : ''}"Answer: " answer )`,
    ...(calls.length ? [`call ::= ${calls.join(' | ')}`] : []),
    `answer ::= "{" ${fields.length ? fields.join(' ", " ') : '""'} "}"`,
    'scalar ::= string | number | boolean',
    ...[...rules].map(([name, body]) => `${name} ::= ${body}`),
    `string ::= "\\"" char{0,${STRING_CHARS}} "\\""`,
    'char ::= [^"\\\\\\x00-\\x1f] | "\\\\" ["\\\\/bfnrt]',
    'integer ::= "-"? ( "0" | [1-9] [0-9]{0,8} )',
    'number ::= integer ( "." [0-9]{1,8} )?',
    'boolean ::= "true" | "false"',
  ];
  return `${lines.join('\n')}\n`;
}

/** The right-hand side for one schema; new rules go into `rules`. Throws Invalid for a schema it cannot express. */
function schemaRule(schema: JsonObject, name: string, rules: Map<string, string>): string {
  if (Array.isArray(schema.enum)) return `( ${schema.enum.map((v) => literal(JSON.stringify(v))).join(' | ')} )`;
  switch (schema.type) {
    case 'string':
    case 'integer':
    case 'number':
    case 'boolean':
      return schema.type;
    case 'array': {
      const item = schemaRule(asObject(schema.items, name), `${name}-item`, rules);
      rules.set(name, `"[" ( ${item} ( ", " ${item} ){0,31} )? "]"`);
      return name;
    }
    case 'object': {
      const properties = asObject(schema.properties ?? {}, name);
      const required = Array.isArray(schema.required) ? schema.required : [];
      const parts = Object.entries(properties)
        .filter(([key]) => required.includes(key))
        .map(
          ([key, value], i) =>
            `${literal(`${JSON.stringify(key)}: `)} ${schemaRule(asObject(value, name), `${name}-${i}`, rules)}`,
        );
      rules.set(name, `"{" ${parts.length ? parts.join(' ", " ') : '""'} "}"`);
      return name;
    }
    default:
      throw new Invalid(
        `Actions of ${name} cannot be constrained: its schema has the type ${JSON.stringify(schema.type)}.`,
      );
  }
}

function asObject(value: Json | undefined, name: string): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Invalid(`The schema of ${name} is no JSON Schema object.`);
  return value;
}

/** A GBNF string literal. */
function literal(text: string): string {
  return `"${text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')}"`;
}
