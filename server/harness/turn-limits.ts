/** What a turn is held to, and the least room it needs. */
import type { ActionFormat } from '../core/actions/format';
import type { PromptTool } from '../core/actions/prompt';
import { Invalid } from '../core/errors';
import type { Skill } from '../core/skills/skill';
import type { BackendCapabilities, Constraint, InferenceBackend } from '../inference/backend';

/**
 * The constraint of a turn, of a kind that the backend offers; undefined when the skill asks for none.
 * Throws Invalid when the backend offers none that can say it.
 */
export function turnConstraint(
  skill: Skill,
  form: { format: ActionFormat; tools: readonly PromptTool[]; startsInThought: boolean },
  backend: Pick<InferenceBackend, 'name'>,
  capabilities: Pick<BackendCapabilities, 'constraints'>,
): Constraint | undefined {
  if (!skill.constrainActions) return undefined;
  const { grammar, jsonSchema } = form.format.constraints(skill, form.tools, form.startsInThought);
  const { constraints: offered } = capabilities;
  if (grammar !== null && offered.includes('grammar')) return { kind: 'grammar', grammar };
  if (jsonSchema !== null && offered.includes('json_schema')) return { kind: 'json_schema', schema: jsonSchema };
  const ways = [...(grammar === null ? [] : ['grammar']), ...(jsonSchema === null ? [] : ['json_schema'])];
  throw new Invalid(
    ways.length === 0
      ? `Turns in the form ${form.format.name} cannot be constrained: set constrain_actions to false in the skill ${skill.skillName}.`
      : `The backend ${backend.name} cannot constrain turns in the form ${form.format.name}: that takes ${ways.join(' or ')}, and it offers ${offered.join(', ') || 'nothing'}. Set constrain_actions to false or choose another backend.`,
  );
}

const sizes = new WeakMap<object, Map<string, Promise<number>>>();
const SIZES_KEPT = 64;

/** Tokens of the shortest turn that is of use, its end included. Encoded once a skill and backend. */
export function shortestTurn(
  backend: Pick<InferenceBackend, 'tokenize'>,
  skill: Skill,
  format: ActionFormat,
  tools: readonly PromptTool[],
): Promise<number> {
  const turns = format.shortestTurns(skill, tools);
  const key = turns.join('\n');
  const known = sizes.get(backend) ?? new Map<string, Promise<number>>();
  sizes.set(backend, known);
  const found = known.get(key);
  if (found) return found;
  const counting = Promise.all(turns.map((turn) => backend.tokenize(turn, { special: true }))).then(
    (encoded) => Math.min(...encoded.map(({ ids }) => ids.length)) + 1,
  );
  known.set(key, counting);
  counting.catch(() => known.delete(key));
  const oldest = known.keys().next();
  if (known.size > SIZES_KEPT && !oldest.done) known.delete(oldest.value);
  return counting;
}
