/** The environment of a skill with tools: runs the calls of a turn, says what came of them, scores the step. */
import type { PromptTool } from '../core/actions/prompt';
import type { ChatMessage, EventData, ToolCall, ToolResult } from '../core/events';
import { scoreEnd, scoreStep } from '../core/rewards/score';
import type { JsonObject } from '../core/vocabulary';
import type { AgentEnv, EnvAction, EnvStep, Outcome, TurnForm } from './agent-env';
import { type CallSite, performCall } from './call';
import type { Judge } from './judge';

export interface ToolEnvOptions extends CallSite {
  judge: Judge | null;
  seed: number;
}

export class ToolEnv implements AgentEnv {
  constructor(private readonly options: ToolEnvOptions) {}

  async reset(
    _seed: number,
    { format, systemMessage }: TurnForm,
  ): Promise<{ messages: ChatMessage[]; info: { tools: PromptTool[]; sampleId: string } }> {
    const { skill, task, tools } = this.options;
    const schemas = tools.schemas(skill.availableTools);
    const messages = format.openingMessages(skill, schemas, task, systemMessage);
    return { messages, info: { tools: schemas, sampleId: task.taskId } };
  }

  async step(action: EnvAction): Promise<EnvStep> {
    const { turn, history, stepNumber } = action;
    const results: ToolResult[] = [];
    // In the order they were written: a later call may rely on what an earlier one did.
    for (const call of turn.calls) results.push(await performCall(this.options, call, action));
    const { skill, task } = this.options;
    const score = scoreStep({ skill, task, calls: turn.calls, results, history, judge: this.hasJudge });
    const terminated = turn.answer !== null;
    const truncated = !terminated && action.lastRound;
    const problem = terminated ? null : turn.problem;
    const observation = terminated || truncated ? '' : observe(turn.calls, results, problem);
    const step = {
      step_number: stepNumber,
      actions: turn.calls,
      results,
      components: score.components,
      reasoning: turn.thought,
    };
    let reward = score.reward;
    let total: Outcome | null = null;
    if (terminated || truncated) {
      const end = await this.end([...history, step as EventData['step.completed']], turn.answer, action.signal);
      reward += end.lastStepBonus;
      total = end;
    }
    return {
      observation,
      reward,
      terminated,
      truncated,
      info: { results, components: score.components, problem, answer: turn.answer, total },
    };
  }

  outcome(history: readonly EventData['step.completed'][], signal: AbortSignal): Promise<Outcome> {
    return this.end(history, null, signal);
  }

  async close(): Promise<void> {}

  private get hasJudge(): boolean {
    return this.options.judge !== null;
  }

  private async end(
    steps: readonly EventData['step.completed'][],
    answer: JsonObject | null,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { skill, task, judge, seed } = this.options;
    const reasoningQuality =
      judge && 'reasoning_quality' in skill.rewardWeights
        ? await judge({ task, steps, answer, seed, signal })
        : undefined;
    return scoreEnd({ skill, task, steps, answer, judge: this.hasJudge, reasoningQuality });
  }
}

/** What the model reads: the one result as it is, several numbered in call order, and what was wrong with the turn. */
function observe(calls: readonly ToolCall[], results: readonly ToolResult[], problem: string | null): string {
  const told =
    results.length === 1 && results[0]
      ? [results[0].observation]
      : results.map((r) => `[${r.callIndex + 1}] ${calls[r.callIndex]?.tool ?? r.tool}: ${r.observation}`);
  if (problem !== null) told.push(`error: ${problem}`);
  return told.join('\n');
}
