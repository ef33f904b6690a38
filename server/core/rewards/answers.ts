/** Scorers of the final answer, each a mean over the skill's required fields. */
import { Invalid } from '../errors';
import { compilePattern, type LinearPattern } from '../skills/pattern';
import type { Skill, Task } from '../skills/skill';
import type { Json, JsonObject } from '../vocabulary';
import type { EndScorer } from './scorer';
import { textOf, wordF1 } from './words';

/** Relative to the reference, absolute below 1. */
const NUMERIC_TOLERANCE = 1e-6;

/** Mean over the required fields of word F1 against the reference. */
export const answerF1 = answerScorer('answer_f1', wordF1);

/** Share of the required fields that equal the reference, spaces at the ends aside. */
export const exact = answerScorer('exact', (text, reference) => (text.trim() === reference.trim() ? 1 : 0));

/** Share of the required fields that are the reference's number. */
export const numeric = answerScorer(
  'numeric',
  (text, reference) => {
    const got = numberOf(text);
    const wanted = numberOf(reference) as number;
    return got !== null && Math.abs(got - wanted) <= NUMERIC_TOLERANCE * Math.max(1, Math.abs(wanted)) ? 1 : 0;
  },
  (reference) => (numberOf(reference) === null ? 'has a reference that is no number' : null),
);

/** Share of the required fields in which the reference, read as a pattern, is found. */
export const regex = answerScorer(
  'regex',
  (text, reference) => (patternOf(reference).test(text) ? 1 : 0),
  (reference) => {
    try {
      compilePattern(reference);
      return null;
    } catch {
      return 'has a reference that is no pattern';
    }
  },
);

function answerScorer(
  name: string,
  compare: (text: string, reference: string) => number,
  referenceProblem: (reference: string) => string | null = () => null,
): EndScorer {
  return {
    name,
    scores: 'end',
    judgesAnswer: true,
    lacks(skill, task) {
      if (task.answer === null) return 'has no reference answer';
      const fields = fieldsOf(skill, task);
      if (fields.length === 0) return 'has a reference answer without fields';
      for (const field of fields) {
        const reference = referenceOf(skill, task, field);
        if (reference === null) return `has a reference answer without ${field}`;
        const problem = referenceProblem(reference);
        if (problem) return `${problem} (${field})`;
      }
      return null;
    },
    score({ skill, task, answer }) {
      const fields = fieldsOf(skill, task);
      let sum = 0;
      for (const field of fields) {
        const value = answer && Object.hasOwn(answer, field) ? answer[field] : null;
        const text = textOf(value);
        if (text === null || value === undefined || breaksAuditRule(skill, field, value)) continue;
        sum += compare(text, referenceOf(skill, task, field) ?? '');
      }
      return fields.length === 0 ? 0 : sum / fields.length;
    },
  };
}

/** The required fields; where a skill requires none, those of the reference. */
function fieldsOf(skill: Skill, task: Task): readonly string[] {
  const { requiredFields } = skill.answerFormat;
  return requiredFields.length > 0 ? requiredFields : isObject(task.answer) ? Object.keys(task.answer) : [];
}

/** A reference that is no object stands for the one required field. */
function referenceOf(skill: Skill, task: Task, field: string): string | null {
  if (isObject(task.answer)) return Object.hasOwn(task.answer, field) ? textOf(task.answer[field]) : null;
  return skill.answerFormat.requiredFields.length === 1 ? textOf(task.answer) : null;
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Of a list every entry must fit. */
function breaksAuditRule(skill: Skill, field: string, value: Json): boolean {
  const values = Array.isArray(value) ? value : [value];
  return skill.auditRules
    .filter((rule) => rule.field === field)
    .some((rule) => values.some((entry) => !patternOf(rule.pattern).test(textOf(entry) ?? '')));
}

function numberOf(text: string): number | null {
  const value = Number(text);
  return text.trim() !== '' && Number.isFinite(value) ? value : null;
}

/** The same few patterns are asked for by every trajectory of a run. */
const compiled = new Map<string, LinearPattern>();
const MOST_COMPILED = 256;

function patternOf(pattern: string): LinearPattern {
  const known = compiled.get(pattern);
  if (known) return known;
  if (compiled.size >= MOST_COMPILED) compiled.clear();
  const fresh = compilePattern(pattern);
  compiled.set(pattern, fresh);
  return fresh;
}

/** Throws Invalid with the task when a scorer cannot score it. */
export function refuseUnscorable(scorer: string, task: Task, lacks: string): never {
  throw new Invalid(`Task ${task.taskId} ${lacks}; the scorer ${scorer} needs it.`, { taskId: task.taskId, scorer });
}
