/** What was chosen at the start of a run and changes its skill for this run alone. */
import { effectiveWeights } from '../core/rewards/score';
import type { Skill } from '../core/skills/skill';
import type { JsonObject } from '../core/vocabulary';

export interface RunOptions {
  temperature: number | null;
  /** Name of the backend that judges `reasoning_quality`; null for none. */
  judge: string | null;
  /** Groups without signal stay out of exports. */
  dropNoSignal: boolean;
}

export function readRunOptions(options: JsonObject): RunOptions {
  const { temperature, judge, dropNoSignal } = options;
  return {
    temperature: typeof temperature === 'number' ? temperature : null,
    judge: typeof judge === 'string' ? judge : null,
    dropNoSignal: dropNoSignal === true,
  };
}

export function applyRunOptions(skill: Skill, { temperature }: RunOptions): Skill {
  return temperature === null ? skill : { ...skill, sampling: { ...skill.sampling, temperature } };
}

/** Sentences a reader of the run must know. Throws Invalid when the skill cannot be scored this way at all. */
export function runNotices(
  skill: Skill,
  { judge, dropNoSignal }: RunOptions,
  tasks: readonly { skill: string | null }[],
): string[] {
  const { notice } = effectiveWeights(skill, judge !== null);
  const others = tasks.filter((task) => task.skill !== null && task.skill !== skill.skillName).length;
  return [
    ...(notice === null ? [] : [notice]),
    ...(dropNoSignal ? ['Groups without signal are left out of exports.'] : []),
    ...(others === 0
      ? []
      : [`${others} of ${tasks.length} tasks name another skill; this run uses ${skill.skillName} for all of them.`]),
  ];
}
