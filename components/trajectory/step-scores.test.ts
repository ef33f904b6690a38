import { describe, expect, it } from 'vitest';
import type { StepView } from '../../server/core/views';
import { stepScores } from './step-scores';

const step = (stepNumber: number, components: Record<string, number>) => ({ stepNumber, components }) as StepView;

describe('what a step scored', () => {
  const steps = [step(0, { tool_accuracy: 1 }), step(1, {})];
  const ended = { steps, reward: 0.7, rewardComponents: { tool_accuracy: 1, answer_f1: 0.5 } };

  it('takes in the scores of the end on the last step alone', () => {
    expect(stepScores(steps[0] as StepView, ended)).toEqual({ tool_accuracy: 1 });
    expect(stepScores(steps[1] as StepView, ended)).toEqual({ answer_f1: 0.5 });
  });
  it('stays with the step while there is no end', () => {
    expect(stepScores(steps[1] as StepView, { steps, reward: null, rewardComponents: {} })).toEqual({});
  });
});
