/** From an answered turn to the next: what is written behind it, or the prompt of a new token sequence. */
import type { ActionFormat } from '../core/actions/format';
import type { EventData, NewEvent } from '../core/events';
import type { Skill } from '../core/skills/skill';
import type { InferenceBackend } from '../inference/backend';
import { encodeInTurn, encodePrompt, encodeReply } from './context';
import { currentSequence, endTokenWasSampled, formOf, inTurnText, replyOf, type TrajectoryState } from './state';

export interface NextPromptDeps {
  backend: InferenceBackend;
  skill: Skill;
  random: () => number;
}

/** The step's event with the observation's tokens; when the template rewrote an earlier turn, a new prompt as well. */
export async function nextPrompt(
  state: TrajectoryState,
  deps: NextPromptDeps,
  completed: EventData['step.completed'],
): Promise<NewEvent[]> {
  const { turn, stepNumber } = state;
  if (!turn) throw new Error('There is no turn to continue after.');
  const { generation } = turn;
  const inTurn = inTurnText(state, completed);
  if (inTurn !== null) {
    const tokens = await encodeInTurn(deps.backend, inTurn, stepNumber);
    return [{ type: 'step.completed', data: completed, tokens }];
  }
  const { format, tools } = formOf(state);
  const offered = format.offered(deps.skill, tools);
  const reply = replyOf(state, completed);
  const tokens = await encodeReply(deps.backend, {
    format,
    before: state.messages,
    added: reply.closing,
    tools: offered,
    endOfTurn: endOfTurnText(state, generation, format),
    step: stepNumber,
    random: deps.random,
  });
  if (tokens) return [{ type: 'step.completed', data: completed, tokens }];
  const messages = [...state.messages, ...reply.messages];
  const rendered: NewEvent = {
    type: 'prompt.rendered',
    data: { messages, tools: [], sequenceIndex: state.sequences.length, reason: 'template_broke_prefix' },
    tokens: await encodePrompt(deps.backend, messages, deps.random, offered),
  };
  return [{ type: 'step.completed', data: completed }, rendered];
}

/** The end-of-turn token that was sampled, as the engine's own or as a stop string; else null. */
function endOfTurnText(
  state: TrajectoryState,
  generation: EventData['generation.completed'],
  format: ActionFormat,
): string | null {
  if (endTokenWasSampled(generation)) return new TextDecoder().decode(currentSequence(state).lastTokenBytes());
  const { stopString } = generation;
  return stopString !== null && format.endTokens.includes(stopString) ? stopString : null;
}
