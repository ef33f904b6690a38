/** What a step's reward is made of. Pure. */
import type { StepView, TrajectoryDetail } from '../../server/core/views';

/** The step's own components and, on the last one, those scored at the end: together they add up to its reward. */
export function stepScores(
  step: Pick<StepView, 'stepNumber' | 'components'>,
  { steps, reward, rewardComponents }: Pick<TrajectoryDetail, 'steps' | 'reward' | 'rewardComponents'>,
): Record<string, number> {
  const last = steps.at(-1);
  if (reward === null || !last || last.stepNumber !== step.stepNumber) return step.components;
  const atTheEnd = Object.entries(rewardComponents).filter(
    ([name]) => !steps.some(({ components }) => Object.hasOwn(components, name)),
  );
  return { ...step.components, ...Object.fromEntries(atTheEnd) };
}
