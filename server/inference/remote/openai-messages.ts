/**
 * Conversations as ids, for a service that takes and gives text only: a byte is its own id, and marks with ids above
 * 255 stand where a message begins and ends. Text that spells a mark stays bytes, so what was rendered can always be
 * read back.
 */
import type { ChatMessage } from '../../core/events';

type Role = ChatMessage['role'];

/** The id of a mark is 256 and its place here. */
const MARKS = ['<|system|>', '<|user|>', '<|assistant|>', '<|tool|>', '<|end|>'] as const;
const ROLES: readonly Role[] = ['system', 'user', 'assistant', 'tool'];
const FIRST_MARK = 256;
const END = FIRST_MARK + MARKS.indexOf('<|end|>');
const ANY_MARK = new RegExp(`(${MARKS.map((mark) => mark.replaceAll('|', '\\|')).join('|')})`, 'u');

export function render(messages: readonly ChatMessage[], addGenerationPrompt: boolean): string {
  const written = messages.map(({ role, content }) => `<|${role}|>${content}<|end|>`);
  return `${written.join('')}${addGenerationPrompt ? '<|assistant|>' : ''}`;
}

/** `special`: what spells a mark is one. */
export function encode(text: string, special: boolean): Int32Array {
  const encoder = new TextEncoder();
  if (!special) return Int32Array.from(encoder.encode(text));
  const parts = text.split(ANY_MARK).map((part): ArrayLike<number> => {
    const mark = (MARKS as readonly string[]).indexOf(part);
    return mark < 0 ? encoder.encode(part) : [FIRST_MARK + mark];
  });
  return Int32Array.from(parts.flatMap((part) => Array.from(part)));
}

/** Bytes that are part of no character read as U+FFFD. */
export function decode(ids: Int32Array): string {
  let text = '';
  for (const { mark, bytes } of runs(ids)) text += (mark === null ? '' : MARKS[mark - FIRST_MARK]) + fromUtf8(bytes);
  return text;
}

/**
 * The messages of a prompt; one whose end is open comes last. Text before the first mark is a user's. A tool's message is
 * sent as a user's: services want to know of which call it is, which no text tells.
 */
export function parse(ids: Int32Array): { role: Exclude<Role, 'tool'>; content: string }[] {
  const messages: { role: Exclude<Role, 'tool'>; content: string }[] = [];
  for (const { mark, bytes } of runs(ids)) {
    const content = fromUtf8(bytes);
    const role = mark === null ? 'user' : (ROLES[mark - FIRST_MARK] ?? null);
    // What stands between two messages belongs to none; an open turn that holds nothing yet is no message.
    if (role === null || (content === '' && (mark === null || role === 'assistant'))) continue;
    messages.push({ role: role === 'tool' ? 'user' : role, content });
  }
  return messages;
}

/** The marks, each with the bytes behind it; first what stands before any. */
function runs(ids: Int32Array): { mark: number | null; bytes: Uint8Array }[] {
  const found: { mark: number | null; bytes: Uint8Array }[] = [];
  let mark: number | null = null;
  let from = 0;
  for (let at = 0; at <= ids.length; at++) {
    const id = ids[at];
    if (id !== undefined && id < FIRST_MARK) continue;
    found.push({ mark, bytes: Uint8Array.from(ids.subarray(from, at)) });
    mark = id ?? null;
    from = at + 1;
  }
  return found;
}

/** Whether each id is a byte or a mark. */
export function isKnown(id: number): boolean {
  return id >= 0 && id <= END;
}

function fromUtf8(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}
