/**
 * A trajectory's log folded into the steps a page draws, finished or still running. It never throws: an event of a
 * shape it does not know adds what can be read of it, because a page that shows an odd log must not fail on it.
 */
import { ACTION_FORMATS, type ActionFormat } from '../../core/actions/format';
import { formatNamed } from '../../core/actions/formats';
import type { StepView } from '../../core/views';
import { PERMISSION_LEVELS, SANDBOX_LEVELS, TOOL_STATUSES } from '../../core/vocabulary';
import { asCount, asList, asNumber, asNumbers, asObject, asText, asTextOrNull, asWord } from './read-json';

/** The events that make steps. */
export const STEP_EVENTS = [
  'prompt.rendered',
  'generation.completed',
  'permission.decided',
  'tool.completed',
  'step.completed',
] as const;

export interface StoredEvent {
  type: string;
  data: unknown;
}

type ResultView = StepView['results'][number];
type ActionView = StepView['actions'][number];

interface OpenStep {
  view: StepView;
  permissions: Map<number, ResultView['permission']>;
}

/** In order of step number. `advantages` are by step, null until the group has ended. */
export function foldSteps(events: Iterable<StoredEvent>, advantages: readonly number[] | null): StepView[] {
  const steps = new Map<number, OpenStep>();
  const stepOf = (data: unknown, key: 'stepNumber' | 'step_number'): OpenStep | null => {
    const stepNumber = asCount(asObject(data)[key]);
    if (stepNumber === null) return null;
    let step = steps.get(stepNumber);
    if (!step) {
      step = { view: emptyStep(stepNumber), permissions: new Map() };
      steps.set(stepNumber, step);
    }
    return step;
  };
  let form: TurnForm = { format: formatNamed('react'), startsInThought: false };
  for (const { type, data } of events) {
    const fields = asObject(data);
    if (type === 'prompt.rendered') {
      form = formOf(fields.actionFormat) ?? form;
      continue;
    }
    if (type === 'task.completed') {
      addToLastStep(steps, asNumber(fields.lastStepBonus) ?? 0);
      continue;
    }
    const step = stepOf(fields, type === 'step.completed' ? 'step_number' : 'stepNumber');
    if (!step) continue;
    if (type === 'generation.completed') showTurn(step.view, form, fields);
    else if (type === 'permission.decided')
      step.permissions.set(asCount(fields.callIndex) ?? 0, permissionView(fields));
    else if (type === 'tool.completed') step.view.results = [...step.view.results, resultView(fields.result)];
    else if (type === 'step.completed') completeStep(step.view, fields);
  }
  return [...steps.values()]
    .sort((a, b) => a.view.stepNumber - b.view.stepNumber)
    .map((step) => finish(step, advantages));
}

/** What the end brought to a step that was complete before it. */
function addToLastStep(steps: ReadonlyMap<number, OpenStep>, bonus: number): void {
  const last = steps.get(Math.max(...steps.keys()));
  if (last && last.view.reward !== null) last.view.reward += bonus;
}

function emptyStep(stepNumber: number): StepView {
  return {
    stepNumber,
    thought: '',
    actions: [],
    results: [],
    answer: null,
    problem: null,
    reward: null,
    components: {},
    advantage: null,
  };
}

interface TurnForm {
  format: ActionFormat;
  startsInThought: boolean;
}

/** Null where the event names none: older logs, and prompts after the first. */
function formOf(value: unknown): TurnForm | null {
  const fields = asObject(value);
  const name = asWord(fields.name, ACTION_FORMATS, null);
  return name === null ? null : { format: formatNamed(name), startsInThought: fields.startsInThought === true };
}

/** What the model wrote, before its step is complete. */
function showTurn(view: StepView, { format, startsInThought }: TurnForm, fields: Record<string, unknown>): void {
  const text = asText(fields.text);
  try {
    const turn = format.parse(new TextEncoder().encode(text), {
      finishReason: asWord(fields.finishReason, ['stop', 'length', 'eos'] as const, 'stop'),
      stopString: asTextOrNull(fields.stopString),
      startsInThought,
    });
    view.thought = turn.thought;
    view.actions = turn.calls.map((call) => ({ ...call, arguments: call.arguments }));
    view.answer = turn.answer;
  } catch {
    view.thought = text;
  }
}

function completeStep(view: StepView, fields: Record<string, unknown>): void {
  view.thought = asText(fields.reasoning);
  view.actions = asList(fields.actions).map(actionView);
  view.results = asList(fields.results).map(resultView);
  view.answer = fields.answer === null || fields.answer === undefined ? null : asObject(fields.answer);
  view.problem = asTextOrNull(fields.problem);
  view.reward = asNumber(fields.reward);
  view.components = asNumbers(fields.components);
}

function actionView(value: unknown, position: number): ActionView {
  const fields = asObject(value);
  return {
    index: asCount(fields.index) ?? position,
    tool: asText(fields.tool),
    arguments: fields.arguments ?? null,
    raw: asText(fields.raw),
  };
}

function resultView(value: unknown): ResultView {
  const fields = asObject(value);
  const truncated = asObject(fields.truncated);
  const outputId = asTextOrNull(truncated.outputId);
  return {
    callIndex: asCount(fields.callIndex) ?? 0,
    tool: asText(fields.tool),
    status: asWord(fields.status, TOOL_STATUSES, 'error'),
    observation: asText(fields.observation),
    error: asTextOrNull(fields.error),
    durationMs: asNumber(fields.durationMs) ?? 0,
    sandboxLevel: asWord(fields.sandboxLevel, SANDBOX_LEVELS, null),
    truncated:
      outputId === null
        ? null
        : { keptBytes: asCount(truncated.keptBytes) ?? 0, totalBytes: asCount(truncated.totalBytes) ?? 0, outputId },
    permission: null,
  };
}

function permissionView(fields: Record<string, unknown>): ResultView['permission'] {
  return {
    level: asWord(fields.level, PERMISSION_LEVELS, 'ask_first'),
    outcome: asWord(fields.outcome, ['allow', 'ask', 'refuse'] as const, 'ask'),
    rule: asText(fields.rule),
  };
}

function finish(step: OpenStep, advantages: readonly number[] | null): StepView {
  const results = step.view.results
    .map((result) => ({ ...result, permission: step.permissions.get(result.callIndex) ?? null }))
    .sort((a, b) => a.callIndex - b.callIndex);
  return { ...step.view, results, advantage: asNumber(advantages?.[step.view.stepNumber]) };
}
