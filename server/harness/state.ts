/**
 * What a trajectory's log says, folded event by event. Holds nothing that is not in the log, so a worker that dies
 * loses nothing: the next one folds the same events and goes on.
 */
import type { ChatMessage, EventData, SessionEvent, ToolResult } from '../core/events';
import { SequenceBuilder } from '../core/tokens/builder';
import type { LogprobKind } from '../core/vocabulary';

/** What the next harness step has to do. */
export type Phase = 'render' | 'generate' | 'act' | 'done';

/** The turn that was sampled and whose calls are not all answered yet. */
export interface OpenTurn {
  generation: EventData['generation.completed'];
  /** The bytes of the turn, the stop string and end-of-turn token left out. */
  bytes: Uint8Array;
  decided: Map<number, EventData['permission.decided']>;
  started: Map<number, EventData['tool.started']>;
  results: Map<number, ToolResult>;
}

export interface TrajectoryState {
  phase: Phase;
  /** The conversation in front of the open assistant turn. */
  messages: ChatMessage[];
  /** Text of the open assistant turn: sampled text and the observations inside it. */
  assistant: string;
  sequences: SequenceBuilder[];
  logprobKinds: LogprobKind[];
  stepNumber: number;
  /** Generations begun for the step at hand; more than one after a crash or a retry. */
  attempts: number;
  turn: OpenTurn | null;
  steps: EventData['step.completed'][];
  end: EventData['task.completed'] | null;
}

export function newTrajectoryState(): TrajectoryState {
  return {
    phase: 'render',
    messages: [],
    assistant: '',
    sequences: [],
    logprobKinds: [],
    stepNumber: 0,
    attempts: 0,
    turn: null,
    steps: [],
    end: null,
  };
}

/** The sequence that grows; there is one from prompt.rendered on. */
export function currentSequence(state: TrajectoryState): SequenceBuilder {
  const sequence = state.sequences.at(-1);
  if (!sequence) throw new Error('The session has no rendered prompt yet.');
  return sequence;
}

/** How an observation goes on in the conversation, decided by how the turn ended. */
export function endedAtStopString(generation: EventData['generation.completed']): boolean {
  return generation.stopString !== null;
}

/** Logs from before engines were told apart say nothing; there, every end-of-turn token was sampled. */
export function endTokenWasSampled(generation: EventData['generation.completed']): boolean {
  return generation.endTokenSampled ?? generation.finishReason === 'eos';
}

export const inTurnObservation = (text: string): string => ` ${text}\n`;
export const messageObservation = (text: string): string => `Observation: ${text}`;

export function foldEvent(state: TrajectoryState, event: SessionEvent): void {
  switch (event.type) {
    case 'prompt.rendered': {
      state.messages = event.data.messages;
      state.assistant = '';
      const sequence = new SequenceBuilder(event.data.sequenceIndex);
      if (event.tokens) sequence.append(event.tokens);
      state.sequences.push(sequence);
      state.phase = 'generate';
      return;
    }
    case 'generation.started':
      state.attempts = event.data.attempt;
      return;
    case 'generation.completed': {
      const sequence = currentSequence(state);
      const start = sequence.length;
      if (event.tokens) sequence.append(event.tokens);
      for (const span of event.weights ?? [])
        sequence.appendWeights({ version: span.version, start: start + span.start, end: start + span.end });
      state.logprobKinds.push(event.data.logprobKind);
      state.turn = {
        generation: event.data,
        bytes: new TextEncoder().encode(event.data.text),
        decided: new Map(),
        started: new Map(),
        results: new Map(),
      };
      state.phase = 'act';
      return;
    }
    case 'permission.decided':
      state.turn?.decided.set(event.data.callIndex, event.data);
      return;
    case 'tool.started':
      state.turn?.started.set(event.data.callIndex, event.data);
      return;
    case 'tool.completed':
      state.turn?.results.set(event.data.result.callIndex, event.data.result);
      return;
    case 'step.completed': {
      const { turn } = state;
      if (event.tokens) currentSequence(state).append(event.tokens);
      if (turn) {
        const sampled = state.assistant + turn.generation.text;
        if (endedAtStopString(turn.generation)) {
          state.assistant = `${sampled}${turn.generation.stopString}${inTurnObservation(event.data.observation)}`;
        } else {
          state.messages = [
            ...state.messages,
            { role: 'assistant', content: sampled },
            { role: 'user', content: messageObservation(event.data.observation) },
          ];
          state.assistant = '';
        }
      }
      state.steps.push(event.data);
      state.turn = null;
      state.attempts = 0;
      state.stepNumber = event.data.step_number + 1;
      state.phase = 'generate';
      return;
    }
    case 'state.changed':
      return;
    case 'task.completed':
      state.end = event.data;
      addToLastStep(state, event.data.lastStepBonus ?? 0);
      state.phase = 'done';
      return;
  }
}

function addToLastStep(state: TrajectoryState, bonus: number): void {
  const last = state.steps.at(-1);
  if (last && bonus !== 0) state.steps = [...state.steps.slice(0, -1), { ...last, reward: last.reward + bonus }];
}

/** One kind for a whole sequence: the weakest claim among its turns. */
export function overallLogprobKind(kinds: readonly LogprobKind[]): LogprobKind {
  const first = kinds[0] ?? 'unknown';
  return kinds.every((kind) => kind === first) ? first : 'unknown';
}
