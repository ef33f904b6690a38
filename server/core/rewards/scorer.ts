/** What a scorer is. Scores lie in 0..1; a skill weighs them by name in reward_weights. */
import type { ToolCall, ToolResult } from '../events';
import type { Skill, Task } from '../skills/skill';
import type { JsonObject } from '../vocabulary';

/** A step as far as scorers look at it: an event `step.completed` fits. */
export interface ScoredStep {
  actions: readonly ToolCall[];
  results: readonly ToolResult[];
  components: Readonly<Record<string, number>>;
}

export interface StepInput {
  skill: Skill;
  task: Task;
  /** The calls of this step and their results, matched by call index. At least one call. */
  calls: readonly ToolCall[];
  results: readonly ToolResult[];
  /** The steps before this one. */
  history: readonly ScoredStep[];
}

export interface EndInput {
  skill: Skill;
  task: Task;
  /** Null: the trajectory ended without one. */
  answer: JsonObject | null;
}

interface Named {
  name: string;
  /** Why this task cannot be scored, as the end of a sentence ('has no reference answer'); null when it can. */
  lacks(skill: Skill, task: Task): string | null;
}

/** Scores every step that has calls. */
export interface StepScorer extends Named {
  scores: 'step';
  score(input: StepInput): number;
}

/** Scores the trajectory once, when it has ended. */
export interface EndScorer extends Named {
  scores: 'end';
  /** It looks at the answer, so that 1 means the answer is right. */
  judgesAnswer: boolean;
  score(input: EndInput): number;
}

/** Its score comes from outside: a judge model's verdict. */
export interface SuppliedScorer extends Named {
  scores: 'end';
  supplied: true;
}

export type Scorer = StepScorer | EndScorer | SuppliedScorer;
