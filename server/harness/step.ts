/**
 * One step of the harness: reads where the session stands and moves it on by one phase. Holds no state of its own;
 * everything it decides is in the log before it has an effect, so any process can take the next step.
 */
import { createHash } from 'node:crypto';
import { Cancelled } from '../core/errors';
import type { EventData } from '../core/events';
import type { Skill } from '../core/skills/skill';
import type { BackendCapabilities, GenerationRequest, GenerationResult, InferenceBackend } from '../inference/backend';
import type { AgentEnv, EnvStep } from '../rollout/agent-env';
import { chooseFormat } from './choose-format';
import { encodePrompt } from './context';
import { nextPrompt } from './next-prompt';
import type { Session } from './session';
import { currentSequence, formOf, type TrajectoryState, turnEndOf } from './state';
import { truncateByTokens } from './truncate';
import { readSampledTurn } from './turn';
import { shortestTurn, turnConstraint } from './turn-limits';

export interface HarnessDeps {
  backend: InferenceBackend;
  capabilities: BackendCapabilities;
  skill: Skill;
  env: AgentEnv;
  /** The trajectory's seed; every generation derives its own from it. */
  seed: number;
  /** Names the trajectory in errors; also the key that keeps its turns on one prefix cache. */
  trajectoryId: string;
  /** Sends a request through the inference side's queue. */
  generate: (request: GenerationRequest) => Promise<{ result: GenerationResult; queuedMs: number }>;
  /** Asked before an end is written: why what was sampled is too old to be of use, or null. */
  outdated: () => Cancelled | null;
  now: () => number;
  random: () => number;
}

/** Moves the session on by one phase. The phase afterwards is in `session.state.phase`. */
export async function harnessStep(session: Session, deps: HarnessDeps, signal: AbortSignal): Promise<void> {
  throwIfAborted(signal);
  switch (session.state.phase) {
    case 'render':
      return render(session, deps);
    case 'generate':
      return generate(session, deps, signal);
    case 'act':
      return act(session, deps, signal);
    case 'done':
      return;
  }
}

async function render(session: Session, deps: HarnessDeps): Promise<void> {
  const { backend, skill, capabilities } = deps;
  const { format, systemMessage, notice } = await chooseFormat(backend, skill.actionFormat);
  const { messages, info } = await deps.env.reset(deps.seed, { format, systemMessage });
  const { tools } = info;
  const tokens = await encodePrompt(backend, messages, deps.random, format.offered(skill, tools));
  const startsInThought = OPENS_THOUGHT.test(new TextDecoder().decode(tokens.bytes.subarray(-THOUGHT_MARK_BYTES)));
  // Said before anything is spent: a backend that cannot constrain this skill's turns.
  turnConstraint(skill, { format, tools, startsInThought }, backend, capabilities);
  await session.append([
    {
      type: 'prompt.rendered',
      data: {
        messages,
        tools: tools.map((tool) => tool.name),
        sequenceIndex: 0,
        reason: 'start',
        actionFormat: { name: format.name, startsInThought, tools, notice },
      },
      tokens,
    },
  ]);
}

const OPENS_THOUGHT = /(?:<think>|\[THINK\])\s*$/;
const THOUGHT_MARK_BYTES = 16;

/** Why no turn can be begun any more; null when one can. */
async function whyNoTurn(state: TrajectoryState, deps: HarnessDeps, room: number): Promise<string | null> {
  const { format, tools } = formOf(state);
  const { maxTokensPerTurn } = deps.skill.sampling;
  const least = await shortestTurn(deps.backend, deps.skill, format, tools);
  if (room < least)
    return `the context of ${deps.capabilities.contextLength} tokens is full: ${Math.max(0, room)} are left, and the shortest turn takes ${least}`;
  if (maxTokensPerTurn < least)
    return `a turn may have ${maxTokensPerTurn} tokens, and the shortest that is of use takes ${least}`;
  return null;
}

async function generate(session: Session, deps: HarnessDeps, signal: AbortSignal): Promise<void> {
  const { state } = session;
  const { skill, capabilities } = deps;
  const sequence = currentSequence(state);
  const room = capabilities.contextLength - sequence.length;
  const reason = await whyNoTurn(state, deps, room);
  if (reason !== null) {
    const outcome = await deps.env.outcome(state.steps, signal);
    throwIfOutdated(deps);
    await session.append([
      { type: 'task.completed', data: { status: 'truncated', ...outcome, answer: null, reason, error: null } },
    ]);
    return;
  }
  const maxTokens = Math.min(skill.sampling.maxTokensPerTurn, room);
  const form = formOf(state);
  const constraint = turnConstraint(skill, form, deps.backend, capabilities);
  const attempt = state.attempts + 1;
  await session.append([
    {
      type: 'generation.started',
      data: { stepNumber: state.stepNumber, attempt, promptTokens: sequence.length, maxTokens },
    },
  ]);
  const started = deps.now();
  const { result, queuedMs } = await deps.generate({
    promptIds: sequence.ids(),
    rawLogprobs: true,
    affinityKey: deps.trajectoryId,
    signal,
    options: {
      maxTokens,
      temperature: skill.sampling.temperature,
      topP: skill.sampling.topP,
      topK: skill.sampling.topK,
      minP: skill.sampling.minP,
      // A retry must not repeat what failed, and two steps must not share their noise.
      seed: mixSeed(deps.seed, state.stepNumber, attempt),
      stop: form.format.stopStrings(skill),
      ...(constraint === undefined ? {} : { constraint }),
    },
  });
  const where = `trajectory ${deps.trajectoryId}`;
  const sampled = readSampledTurn(result, form, state.stepNumber, sequence.length, where, capabilities.canScore);
  await session.append([
    {
      type: 'generation.completed',
      data: {
        stepNumber: state.stepNumber,
        text: sampled.text,
        finishReason: result.finishReason,
        endTokenSampled: result.endTokenSampled,
        stopString: result.stopString,
        weightVersion: result.weightVersions.at(-1)?.version ?? '',
        logprobKind: result.logprobKind,
        ...(capabilities.tokenIds ? {} : { approximate: true as const }),
        durationMs: deps.now() - started - queuedMs,
        queuedMs,
      },
      tokens: sampled.chunk,
      weights: result.weightVersions,
    },
  ]);
}

async function act(session: Session, deps: HarnessDeps, signal: AbortSignal): Promise<void> {
  const { state } = session;
  const { turn, stepNumber } = state;
  if (!turn) throw new Error('The session is in its act phase without a turn.');
  const parsed = formOf(state).format.parse(turn.bytes, turnEndOf(state, turn.generation));
  const step = await deps.env.step({
    turn: parsed,
    stepNumber,
    history: state.steps,
    resumed: { results: turn.results, started: new Set(turn.started.keys()) },
    lastRound: stepNumber + 1 >= deps.skill.maxRounds,
    journal: {
      append: (events, audit) => session.append(events, audit),
      saveOutput: (content) => session.saveOutput(content),
    },
    truncate: (text) =>
      truncateByTokens(deps.backend, text, deps.skill.maxObservationTokens, (content) => session.saveOutput(content)),
    signal,
  });
  const completed: EventData['step.completed'] = {
    step_number: stepNumber,
    perception: state.steps.at(-1)?.observation ?? lastUserMessage(state),
    reasoning: parsed.thought,
    actions: parsed.calls,
    results: step.info.results,
    observation: step.observation,
    reward: step.reward,
    components: step.info.components,
    stateKey: sha256(state.steps.at(-1)?.observation ?? lastUserMessage(state)),
    problem: step.info.problem,
    answer: step.info.answer,
  };
  if (step.terminated || step.truncated) {
    // The weights may have moved on while its last call ran or it was judged.
    throwIfOutdated(deps);
    await session.append([
      { type: 'step.completed', data: completed },
      { type: 'task.completed', data: endOf(step) },
    ]);
    return;
  }
  await session.append(await nextPrompt(state, deps, completed));
}

function throwIfOutdated({ outdated }: HarnessDeps): void {
  const reason = outdated();
  if (reason) throw reason;
}

function endOf(step: EnvStep): EventData['task.completed'] {
  return {
    status: step.terminated ? 'completed' : 'truncated',
    reward: step.info.total?.reward ?? null,
    components: step.info.total?.components ?? {},
    success: step.info.total?.success ?? null,
    answer: step.info.answer,
    reason: step.terminated ? 'answer' : 'round limit',
    error: null,
  };
}

const lastUserMessage = (state: TrajectoryState): string =>
  state.messages.findLast((m) => m.role === 'user')?.content ?? '';

function mixSeed(seed: number, step: number, attempt: number): number {
  let mixed = (seed ^ Math.imul(step + 1, 0x9e3779b1) ^ Math.imul(attempt, 0x85ebca6b)) >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad) >>> 0;
  return (mixed ^ (mixed >>> 15)) >>> 1;
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted)
    throw signal.reason instanceof Error ? signal.reason : new Cancelled('The trajectory was stopped.');
}
