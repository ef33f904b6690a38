/**
 * Grammars (GBNF, llama.cpp's form) that let a model write only turns that parse: a thought, then one call with
 * arguments that fit the tool's schema, or the answer.
 */
import { Invalid } from '../errors';
import type { Skill } from '../skills/skill';
import type { Json, JsonObject } from '../vocabulary';
import { FINAL_ANSWER } from './final-answer';
import type { PromptTool } from './prompt';

/** Longest thought and longest string, in characters: a small model under a grammar would otherwise never stop. */
const THOUGHT_CHARS = 160;
const STRING_CHARS = 200;

/** How a call is written: what stands before its arguments, and what behind them. */
export interface WrittenForm {
  before: (name: string) => string;
  after: string;
}

const REACT_FORM: WrittenForm = { before: (name) => `{"tool": ${JSON.stringify(name)}, "args": `, after: '}' };

/** A ReAct turn. */
export function turnGrammar(skill: Skill, tools: readonly PromptTool[]): string {
  const root = `"Thought: " [^\\n\\x00-\\x1f]{1,${THOUGHT_CHARS}} "\\n" ( ${tools.length ? '"Action: " call "\\nObservation:" | ' : ''}"Answer: " answer )`;
  return grammarText(root, skill, callRules(tools, [REACT_FORM]));
}

/**
 * A turn that holds one call, the final answer's among them, and nothing behind it.
 * @param root the root rule, in which `call` is the call, and `thought` and `say` are bounded text without `<`
 * @param forms the ways a call may be written
 */
export function callGrammar(
  root: string,
  skill: Skill,
  tools: readonly PromptTool[],
  forms: readonly WrittenForm[],
): string {
  const rules = callRules(tools, forms);
  rules.set(`call${tools.length}`, written(forms, FINAL_ANSWER, 'answer'));
  if (/\bthought\b/.test(root)) rules.set('thought', `[^<\\x00-\\x09\\x0b-\\x1f]{0,${THOUGHT_CHARS}}`);
  if (/\bsay\b/.test(root)) rules.set('say', `[^<\\x00-\\x1f]{0,${THOUGHT_CHARS}}`);
  return grammarText(root, skill, rules);
}

/** `call0`, `call1`, … in the order of the tools, with what they need. */
function callRules(tools: readonly PromptTool[], forms: readonly WrittenForm[]): Map<string, string> {
  const rules = new Map<string, string>();
  tools.forEach((tool, i) => {
    const args = schemaRule(tool.parameters, `tool${i}`, rules);
    rules.set(`call${i}`, written(forms, tool.name, args));
  });
  return rules;
}

function written(forms: readonly WrittenForm[], name: string, args: string): string {
  return forms.map(({ before, after }) => `${literal(before(name))} ${args} ${literal(after)}`).join(' | ');
}

function grammarText(root: string, skill: Skill, rules: ReadonlyMap<string, string>): string {
  const fields = skill.answerFormat.requiredFields.map((field) => `${literal(`${JSON.stringify(field)}: `)} scalar`);
  const calls = [...rules.keys()].filter((name) => /^call\d+$/.test(name));
  const lines = [
    `root ::= ${root}`,
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
