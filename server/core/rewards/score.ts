/**
 * Scores put together by a skill's weights.
 *
 * step_rewards[t] = Σ over step scorers of weight · score_t (0 without a call), plus on the last step Σ over end scorers
 * of weight · score. reward = the same, with the mean over the steps that have calls in place of score_t (0 when none has).
 * A trajectory that failed, was cancelled or timed out is not scored: its reward is null.
 */
import { Invalid } from '../errors';
import type { Skill, Task } from '../skills/skill';
import { answerF1, refuseUnscorable } from './answers';
import { findScorer, reasoningQuality } from './registry';
import type { EndInput, ScoredStep, Scorer, StepInput } from './scorer';

export interface EffectiveWeights {
  weights: { scorer: Scorer; weight: number }[];
  /** What a reader of the run must know; null when the weights are the skill's own. */
  notice: string | null;
}

/** Without a judge the other weights are scaled to sum to 1. Throws Invalid when nothing is left or a scorer is unknown. */
export function effectiveWeights(skill: Skill, judge: boolean): EffectiveWeights {
  const all = Object.entries(skill.rewardWeights).map(([name, weight]) => {
    const scorer = findScorer(name);
    if (!scorer)
      throw new Invalid(`The skill ${skill.skillName} weighs ${name}, which is not a scorer.`, { scorer: name });
    return { scorer, weight };
  });
  const left = judge ? all : all.filter(({ scorer }) => scorer !== reasoningQuality);
  const dropped = all.find(({ scorer, weight }) => scorer === reasoningQuality && weight > 0 && !judge);
  if (!dropped) return { weights: left, notice: null };
  const sum = left.reduce((total, { weight }) => total + weight, 0);
  if (sum <= 0)
    throw new Invalid(
      `The skill ${skill.skillName} is scored by reasoning_quality alone, which needs a judge, and this run has none.`,
    );
  return {
    weights: left.map(({ scorer, weight }) => ({ scorer, weight: weight / sum })),
    notice: `reasoning_quality (weight ${dropped.weight}) is left out: this run has no judge. The other weights are scaled to sum to 1.`,
  };
}

/** Why the skill's scorers cannot score the task, as a sentence; null when they can. Checked when a run starts. */
export function scoringProblem(skill: Skill, task: Task, judge = false): string | null {
  for (const { scorer } of effectiveWeights(skill, judge).weights) {
    const lacks = scorer.lacks(skill, task);
    if (lacks) return `Task ${task.taskId} ${lacks}; the scorer ${scorer.name} needs it.`;
  }
  return null;
}

export interface StepScore {
  /** Without the end's share. */
  reward: number;
  /** Score of each step scorer; empty for a step without calls. */
  components: Record<string, number>;
}

/** `judge`: whether the run has one; the same for every step and the end of a run. */
export function scoreStep(input: StepInput & { judge?: boolean }): StepScore {
  const components: Record<string, number> = {};
  let reward = 0;
  if (input.calls.length === 0) return { reward, components };
  for (const { scorer, weight } of effectiveWeights(input.skill, input.judge ?? false).weights) {
    if (scorer.scores !== 'step') continue;
    const lacks = scorer.lacks(input.skill, input.task);
    if (lacks) refuseUnscorable(scorer.name, input.task, lacks);
    const score = scorer.score(input);
    components[scorer.name] = score;
    reward += weight * score;
  }
  return { reward, components };
}

export interface EndScore {
  /** What the last step's reward gains. */
  lastStepBonus: number;
  /** Score of every weighed scorer; of a step scorer the mean over the steps with calls. */
  components: Record<string, number>;
  reward: number;
  /** The answer is right in every respect the skill scores; null when there is nothing to compare it with. */
  success: boolean | null;
}

/**
 * @param input.steps every step of the trajectory, the last one included, with the components `scoreStep` gave
 * @param input.reasoningQuality the judge's verdict, 0..1; required exactly when `judge` is true
 */
export function scoreEnd(
  input: EndInput & { steps: readonly Pick<ScoredStep, 'components'>[]; judge?: boolean; reasoningQuality?: number },
): EndScore {
  const { skill, task, steps, judge = false } = input;
  const components: Record<string, number> = {};
  let lastStepBonus = 0;
  let stepShare = 0;
  let right: boolean | null = null;
  for (const { scorer, weight } of effectiveWeights(skill, judge).weights) {
    const lacks = scorer.lacks(skill, task);
    if (lacks) refuseUnscorable(scorer.name, task, lacks);
    if (scorer.scores === 'step') {
      const mean = meanOf(scorer.name, steps);
      components[scorer.name] = mean;
      stepShare += weight * mean;
      continue;
    }
    const score = 'supplied' in scorer ? verdictOf(input.reasoningQuality) : scorer.score(input);
    components[scorer.name] = score;
    lastStepBonus += weight * score;
    if (!('supplied' in scorer) && scorer.judgesAnswer) right = (right ?? true) && score === 1;
  }
  if (right === null && answerF1.lacks(skill, task) === null) right = answerF1.score(input) === 1;
  return { lastStepBonus, components, reward: stepShare + lastStepBonus, success: right };
}

/** Over the steps that have the component: those with calls. */
function meanOf(name: string, steps: readonly Pick<ScoredStep, 'components'>[]): number {
  let sum = 0;
  let count = 0;
  for (const { components } of steps) {
    if (!Object.hasOwn(components, name)) continue;
    sum += components[name] as number;
    count++;
  }
  return count === 0 ? 0 : sum / count;
}

function verdictOf(verdict: number | undefined): number {
  if (verdict === undefined || !(verdict >= 0 && verdict <= 1))
    throw new Invalid(`The judge's verdict is ${verdict ?? 'missing'}; it must be a number from 0 to 1.`);
  return verdict;
}
