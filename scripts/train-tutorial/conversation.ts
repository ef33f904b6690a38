/**
 * How the product lays a trajectory out as tokens, for training and measuring: the prompt goes through the ChatML template,
 * what was sampled stays as it is, an observation is put behind the stop string as ` text\n`. Template text is encoded with
 * control tokens, everything a person, a task or a tool wrote without.
 */
import { formatNamed } from '../../server/core/actions/formats';
import type { Skill } from '../../server/core/skills/skill';
import { PROBE_TOOL } from './search-task';

/** Encodes text; `special` says whether control strings in it become control tokens. */
export type Encode = (text: string, special: boolean) => readonly number[];

export const END_OF_TURN = '<|im_end|>';

/** Ids of the opening: system message, task, and the start of the assistant's turn. */
export function encodeOpening(encode: Encode, skill: Skill, prompt: string): number[] {
  const task = { taskId: 'task', prompt, answer: null, metadata: {}, skill: skill.skillName };
  const ids: number[] = [];
  for (const { role, content } of formatNamed('react').openingMessages(skill, [PROBE_TOOL], task, true)) {
    ids.push(...encode(`<|im_start|>${role}\n`, true), ...encode(content, false), ...encode(`${END_OF_TURN}\n`, true));
  }
  ids.push(...encode('<|im_start|>assistant\n', true));
  return ids;
}

/** Ids of what is put behind a turn that ended at its stop string. */
export function encodeObservation(encode: Encode, observation: string): readonly number[] {
  return encode(` ${observation}\n`, false);
}
