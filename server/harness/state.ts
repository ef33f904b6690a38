/**
 * What a trajectory's log says, folded event by event. Holds nothing that is not in the log, so a worker that dies
 * loses nothing: the next one folds the same events and goes on.
 */
import {
  type ActionFormat,
  REACT_TRAJECTORY,
  type Reply,
  type TrajectoryFormat,
  type TurnEnd,
} from '../core/actions/format';
import { formatNamed } from '../core/actions/formats';
import type { PromptTool } from '../core/actions/prompt';
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
  format: TrajectoryFormat;
  /** The conversation in front of the open assistant turn. */
  messages: ChatMessage[];
  /** Text of the open assistant turn: sampled text and the observations inside it. */
  assistant: string;
  sequences: SequenceBuilder[];
  logprobKinds: LogprobKind[];
  /** Some of it was sampled by a server that gives no token ids. */
  approximate: boolean;
  /** Labels of the weights that sampled it, in order of first use. */
  weightVersions: string[];
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
    format: REACT_TRAJECTORY,
    messages: [],
    assistant: '',
    sequences: [],
    logprobKinds: [],
    approximate: false,
    weightVersions: [],
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

/** How the trajectory's turns are read, and what they may call. */
export interface Form {
  format: ActionFormat;
  tools: PromptTool[];
  startsInThought: boolean;
}

export function formOf({ format: { name, tools, startsInThought } }: TrajectoryState): Form {
  return { format: formatNamed(name), tools, startsInThought };
}

/** How the open turn came to its end. */
export function turnEndOf(state: TrajectoryState, generation: EventData['generation.completed']): TurnEnd {
  const { finishReason, stopString } = generation;
  return { finishReason, stopString, startsInThought: state.format.startsInThought };
}

/** What is written behind a turn that goes on with its observation, or null when it ends and messages follow. */
export function inTurnText(state: TrajectoryState, completed: EventData['step.completed']): string | null {
  if (!state.turn) return null;
  return formatNamed(state.format.name).inTurn(state.turn.generation.stopString, completed.observation);
}

/** What the open turn and its results add to the conversation. */
export function replyOf(state: TrajectoryState, completed: EventData['step.completed']): Reply {
  if (!state.turn) throw new Error('There is no turn to go on after.');
  const { generation } = state.turn;
  return formatNamed(state.format.name).reply({
    ...turnEndOf(state, generation),
    text: state.assistant + generation.text,
    stepNumber: completed.step_number,
    results: completed.results,
    problem: completed.problem,
    observation: completed.observation,
  });
}

/** Logs from before engines were told apart say nothing; there, every end-of-turn token was sampled. */
export function endTokenWasSampled(generation: EventData['generation.completed']): boolean {
  return generation.endTokenSampled ?? generation.finishReason === 'eos';
}

export function foldEvent(state: TrajectoryState, event: SessionEvent): void {
  switch (event.type) {
    case 'prompt.rendered': {
      state.messages = event.data.messages;
      if (event.data.actionFormat) state.format = event.data.actionFormat;
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
      for (const span of event.weights ?? []) {
        sequence.appendWeights({ version: span.version, start: start + span.start, end: start + span.end });
        if (!state.weightVersions.includes(span.version)) state.weightVersions.push(span.version);
      }
      state.logprobKinds.push(event.data.logprobKind);
      state.approximate ||= event.data.approximate === true;
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
        const inTurn = inTurnText(state, event.data);
        if (inTurn !== null) {
          state.assistant += `${turn.generation.text}${turn.generation.stopString}${inTurn}`;
        } else {
          state.messages = [...state.messages, ...replyOf(state, event.data).messages];
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
