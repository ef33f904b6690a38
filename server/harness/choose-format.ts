/**
 * Which form a trajectory's turns have. A template is asked by a probe: a conversation with one function, one call of it
 * and its result; how the template writes the call is how its model was trained to write one.
 */
import type { ActionFormat, ActionFormatName } from '../core/actions/format';
import { formatNamed } from '../core/actions/formats';
import { Invalid } from '../core/errors';
import type { ChatMessage } from '../core/events';
import type { Skill } from '../core/skills/skill';
import type { InferenceBackend } from '../inference/backend';

export interface ChosenFormat {
  format: ActionFormat;
  /** The template keeps a system message where it is. */
  systemMessage: boolean;
  /** Why `auto` came to ReAct; else null. */
  notice: string | null;
}

interface TemplateFacts {
  /** Null: none that is known. */
  format: ActionFormatName | null;
  systemMessage: boolean;
  /** What stands in the way of a tool-call format, as a sentence without its end. */
  reason: string;
}

const NAME = 'look_up';
const MARK = 'k4v7q2';
const ARGS = `\\{\\s*"${MARK}"\\s*:\\s*0\\s*\\}`;
const CALLS: [ActionFormatName, RegExp][] = [
  ['harmony', new RegExp(`to=functions\\.${NAME}[^{]*<\\|message\\|>\\s*${ARGS}`)],
  ['mistral', new RegExp(`\\[TOOL_CALLS\\]\\s*(?:${NAME}[^{]*${ARGS}|\\[\\s*\\{[^{]*${ARGS})`)],
  ['hermes', new RegExp(`<tool_call>\\s*\\{[^{<]*"arguments"\\s*:\\s*${ARGS}[^<]*</tool_call>`)],
  ['llama3', new RegExp(`\\{\\s*"name"\\s*:\\s*"${NAME}"\\s*,\\s*"parameters"\\s*:\\s*${ARGS}\\s*\\}`)],
];
const TOOL = {
  name: NAME,
  description: 'Looks a number up.',
  parameters: { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'] },
};
const ID = 'c00000000';

const known = new WeakMap<InferenceBackend, Promise<TemplateFacts>>();

/** Throws Invalid when the skill names a form that the backend's template does not write. */
export async function chooseFormat(backend: InferenceBackend, wanted: Skill['actionFormat']): Promise<ChosenFormat> {
  if (wanted === 'react') return reactWith(null);
  const facts = await factsOf(backend);
  const { format, systemMessage, reason } = facts;
  if (format !== null && (wanted === 'auto' || wanted === format))
    return { format: formatNamed(format), systemMessage, notice: null };
  if (wanted === 'auto') return reactWith(`Turns are ReAct: the chat template of ${backend.name} ${reason}.`);
  const instead = format === null ? reason : `writes tool calls in the form ${format}`;
  throw new Invalid(
    `The skill asks for the action format ${wanted}, but the chat template of ${backend.name} ${instead}. Choose auto or react, or a backend whose template writes it.`,
  );
}

const reactWith = (notice: string | null): ChosenFormat => ({
  format: formatNamed('react'),
  systemMessage: true,
  notice,
});

/** Asked once a backend; one that could not be reached is asked again. */
function factsOf(backend: InferenceBackend): Promise<TemplateFacts> {
  const asked = known.get(backend);
  if (asked) return asked;
  const asking = probe(backend);
  known.set(backend, asking);
  asking.catch(() => known.delete(backend));
  return asking;
}

async function probe(backend: InferenceBackend): Promise<TemplateFacts> {
  let facts: TemplateFacts | null = null;
  for (const systemMessage of [true, false]) {
    const found = await probeWith(backend, systemMessage);
    // Without the prefix every step would begin a new sequence: the other way may keep it.
    if (found.extends) return found;
    facts ??= found;
  }
  return facts as TemplateFacts;
}

async function probeWith(
  backend: InferenceBackend,
  systemMessage: boolean,
): Promise<TemplateFacts & { extends: boolean }> {
  const none = (reason: string) => ({ format: null, systemMessage, reason, extends: false });
  const opening: ChatMessage[] = [
    ...(systemMessage ? [{ role: 'system' as const, content: 'You look numbers up.' }] : []),
    { role: 'user', content: 'Look one up.' },
  ];
  const call = { id: ID, type: 'function' as const, function: { name: NAME, arguments: { [MARK]: 0 } } };
  const answered: ChatMessage[] = [
    ...opening,
    { role: 'assistant', content: '', tool_calls: [call] },
    { role: 'tool', content: '8', name: NAME, tool_call_id: ID },
  ];
  const options = { addGenerationPrompt: true, tools: [TOOL] };
  let before: string;
  let after: string;
  try {
    before = await backend.applyTemplate(opening, options);
    after = await backend.applyTemplate(answered, options);
  } catch (error) {
    // A server that does not answer says nothing about its template.
    if (!(error instanceof Invalid)) throw error;
    return none(`refuses functions and their calls (${error.message})`);
  }
  if (!before.includes(NAME)) return none('does not tell the model which functions there are');
  const found = CALLS.find(([, written]) => written.test(after));
  if (!found) return none('writes calls of functions in no form that is known here');
  return { format: found[0], systemMessage, reason: '', extends: after.startsWith(before) };
}
