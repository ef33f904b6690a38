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
  /** Null: trajectories may be as old as they get. */
  staleness: Staleness | null;
}

/** How many versions the weights may move on under a trajectory, and what becomes of one that is older. */
export interface Staleness {
  limit: number;
  /** Begin it anew, or end it as cancelled. */
  older: 'redo' | 'drop';
}

export function readRunOptions(options: JsonObject): RunOptions {
  const { temperature, judge, dropNoSignal, maxStaleness, stale } = options;
  return {
    temperature: typeof temperature === 'number' ? temperature : null,
    judge: typeof judge === 'string' ? judge : null,
    dropNoSignal: dropNoSignal === true,
    staleness:
      typeof maxStaleness === 'number' ? { limit: maxStaleness, older: stale === 'drop' ? 'drop' : 'redo' } : null,
  };
}

export function applyRunOptions(skill: Skill, { temperature }: RunOptions): Skill {
  return temperature === null ? skill : { ...skill, sampling: { ...skill.sampling, temperature } };
}

/** Sentences a reader of the run must know. Throws Invalid when the skill cannot be scored this way at all. */
export function runNotices(
  skill: Skill,
  { judge, dropNoSignal, staleness }: RunOptions,
  tasks: readonly { skill: string | null }[],
): string[] {
  const { notice } = effectiveWeights(skill, judge !== null);
  const others = tasks.filter((task) => task.skill !== null && task.skill !== skill.skillName).length;
  return [
    ...(notice === null ? [] : [notice]),
    ...(dropNoSignal ? ['Groups without signal are left out of exports.'] : []),
    ...(staleness
      ? [
          `A trajectory whose weights are more than ${staleness.limit} ${staleness.limit === 1 ? 'version' : 'versions'} old is ${staleness.older === 'redo' ? 'begun anew' : 'dropped'}.`,
        ]
      : []),
    ...(others === 0
      ? []
      : [`${others} of ${tasks.length} tasks name another skill; this run uses ${skill.skillName} for all of them.`]),
  ];
}
