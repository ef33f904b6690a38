/** What tests of the tool-call formats share: models, how each writes a call, and how their sequences are looked at. */
import { expect } from 'vitest';
import type { SessionEvent } from '../../core/events';
import { SEGMENT_KINDS } from '../../core/vocabulary';
import { eventsOf, sure, testEngine, testSkill } from '../../rollout/testing/rollouts';
import type { ScriptedOptions } from '../../rollout/testing/scripted-backend';
import type { Session } from '../session';
import { HERMES3, QWEN3, QWEN3_THINKING, QWEN25 } from './chatml-templates';
import { GPT_OSS } from './gpt-oss-template';
import { LLAMA31 } from './llama-template';
import { MISTRAL_SMALL, MISTRAL_V3 } from './mistral-templates';
import type { ModelChat } from './model-chat';

export const skill = testSkill({ actionFormat: 'auto', instructions: 'Be exact.', stop: null });
export const run = (chat: ModelChat, script: ScriptedOptions['script'], more: Partial<ScriptedOptions> = {}) => {
  const engine = testEngine({ chat, script, ...more });
  return {
    ...engine,
    go: (changes: Parameters<typeof testSkill>[0] = {}) => engine.one({ skill: { ...skill, ...changes } }),
  };
};

export const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
export const sequencesOf = (session: Session) => session.state.sequences.map((builder) => builder.finish());

/** Text of the tokens that were sampled (`[…]`) and of those that were not, in order. */
export function masked(session: Session, sequence = 0, fromStep = 0): string {
  const { mask, byteEnds, bytes, stepIndex, logprobs } = sure(sequencesOf(session)[sequence]);
  let text = '';
  let open = false;
  mask.forEach((m, k) => {
    expect(Number.isNaN(logprobs[k])).toBe(m === 0);
    if ((stepIndex[k] ?? -1) < fromStep) return;
    if ((m === 1) !== open) text += m === 1 ? '⟦' : '⟧';
    open = m === 1;
    text += textOf(bytes.subarray(k === 0 ? 0 : byteEnds[k - 1], byteEnds[k]));
  });
  return open ? `${text}⟧` : text;
}

export function ofKind(session: Session, kind: (typeof SEGMENT_KINDS)[number], sequence = 0): string {
  const { segment, byteEnds, bytes } = sure(sequencesOf(session)[sequence]);
  let text = '';
  segment.forEach((code, k) => {
    if (SEGMENT_KINDS[code] === kind) text += textOf(bytes.subarray(k === 0 ? 0 : byteEnds[k - 1], byteEnds[k]));
  });
  return text;
}

export const formatOf = (events: readonly SessionEvent[]) =>
  sure(eventsOf(events, 'prompt.rendered')[0]).data.actionFormat;

export interface Model {
  chat: ModelChat;
  format: string;
  call(name: string, args: object): string;
  /** What stands between the first turn and the second, the first's own end-of-turn token left out. */
  between: string;
}

export const hermesCall = (name: string, args: object): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
export const harmonyCall = (name: string, args: object): string =>
  `<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>${JSON.stringify(args)}`;

export const MODELS: Record<string, Model> = {
  'Qwen 2.5': {
    chat: QWEN25,
    format: 'hermes',
    call: hermesCall,
    between: '\n<|im_start|>user\n<tool_response>\n8\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
  },
  'Qwen 3': {
    chat: QWEN3,
    format: 'hermes',
    call: (name, args) => `<think>\nHm.\n</think>\n\n${hermesCall(name, args)}`,
    between: '\n<|im_start|>user\n<tool_response>\n8\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
  },
  'Qwen 3 without thinking': {
    chat: QWEN3,
    format: 'hermes',
    call: hermesCall,
    between: '\n<|im_start|>user\n<tool_response>\n8\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
  },
  'Qwen 3 whose prompt opens the thinking': {
    chat: QWEN3_THINKING,
    format: 'hermes',
    call: (name, args) => `Hm.\n</think>\n\n${hermesCall(name, args)}`,
    between: '\n<|im_start|>user\n<tool_response>\n8\n</tool_response><|im_end|>\n<|im_start|>assistant\n<think>\n',
  },
  'Hermes 3': {
    chat: HERMES3,
    format: 'hermes',
    call: hermesCall,
    between: '\n<|im_start|>tool\n<tool_response>\n8\n</tool_response><|im_end|><|im_start|>assistant\n',
  },
  'Llama 3.1': {
    chat: LLAMA31,
    format: 'llama3',
    call: (name, args) => JSON.stringify({ name, parameters: args }),
    between:
      '<|start_header_id|>ipython<|end_header_id|>\n\n"8"<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
  },
  'Mistral v0.3': {
    chat: MISTRAL_V3,
    format: 'mistral',
    call: (name, args) => `[TOOL_CALLS] [${JSON.stringify({ name, arguments: args })}]`,
    between: '[TOOL_RESULTS] {"content": 8, "call_id": "c00000000"}[/TOOL_RESULTS]',
  },
  'Mistral Small': {
    chat: MISTRAL_SMALL,
    format: 'mistral',
    call: (name, args) => `[TOOL_CALLS]${name}[ARGS]${JSON.stringify(args)}`,
    between: '[TOOL_RESULTS]8[/TOOL_RESULTS]',
  },
  'gpt-oss': {
    chat: GPT_OSS,
    format: 'harmony',
    call: harmonyCall,
    between: '<|start|>functions.double to=assistant<|channel|>commentary<|message|>"8"<|end|><|start|>assistant',
  },
};
