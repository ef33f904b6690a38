/**
 * What a person, a task, a tool or the policy wrote is rendered under random marks and put in their place afterwards, so
 * that it can neither imitate the template nor change what the template does.
 *
 * A mark ends in a quotation mark: where the template writes it with a backslash, the text stands in a JSON string and is
 * written as such a string has it. A call's arguments are marked as one object.
 */
import type { ChatMessage, ChatToolCall } from '../core/events';
import type { Json, JsonObject, SegmentKind } from '../core/vocabulary';

/** A stretch of a rendered conversation. */
export interface Piece {
  text: string;
  kind: SegmentKind;
  /** Whether control strings in it are control tokens: true for what the template wrote, false for everything else. */
  special: boolean;
  /** What it stands for; null for what the template wrote. */
  field: MarkedField | null;
}

export interface MarkedField {
  /** Position of the message among those that were marked. */
  message: number;
  text: string;
  kind: SegmentKind;
  isArguments: boolean;
}

export class Marks {
  readonly messages: ChatMessage[];
  readonly fields: MarkedField[] = [];
  readonly #noise: string;

  constructor(messages: readonly ChatMessage[], random: () => number) {
    this.#noise = Array.from({ length: 4 }, () => Math.floor(random() * 0x100000000).toString(36)).join('');
    this.messages = messages.map((message, k) => this.#marked(message, k));
  }

  /** The rendered text cut at its marks. A text that the template left out has no piece. */
  cut(rendered: string): Piece[] {
    const mark = `m(\\d+)x${this.#noise}x`;
    const found = new RegExp(`\\{\\s*"${mark}"\\s*:\\s*0\\s*\\}|${mark}(\\\\?)"`, 'g');
    const pieces: Piece[] = [];
    let at = 0;
    for (const match of rendered.matchAll(found)) {
      const field = this.fields[Number(match[1] ?? match[2])];
      if (!field) continue;
      pieces.push(ofTemplate(rendered.slice(at, match.index)));
      pieces.push({ text: match[3] ? escaped(field.text) : field.text, kind: field.kind, special: false, field });
      at = match.index + match[0].length;
    }
    pieces.push(ofTemplate(rendered.slice(at)));
    return pieces.filter((piece) => piece.text !== '');
  }

  #marked(message: ChatMessage, position: number): ChatMessage {
    const { role, content, thinking, tool_calls: calls } = message;
    const kind = kindOf(role);
    const mark = (text: string): string => (text === '' ? '' : `${this.#add(position, text, kind, false)}"`);
    return {
      ...message,
      content: role === 'assistant' ? aroundThinking(content, mark) : mark(content),
      ...(thinking === undefined ? {} : { thinking: mark(thinking) }),
      ...(calls === undefined ? {} : { tool_calls: calls.map((call) => this.#markedCall(call, position)) }),
    };
  }

  #markedCall(call: ChatToolCall, position: number): ChatToolCall {
    const written = pythonJson(call.function.arguments);
    const mark = this.#add(position, written, 'template', true);
    return { ...call, function: { name: call.function.name, arguments: { [mark]: 0 } } };
  }

  #add(message: number, text: string, kind: SegmentKind, isArguments: boolean): string {
    this.fields.push({ message, text, kind, isArguments });
    return `m${this.fields.length - 1}x${this.#noise}x`;
  }
}

const ofTemplate = (text: string): Piece => ({ text, kind: 'template', special: true, field: null });

function kindOf(role: ChatMessage['role']): SegmentKind {
  if (role === 'tool') return 'observation';
  return role === 'assistant' ? 'template' : role;
}

/** Thinking blocks and what stands outside of them are marked apart: a template may drop the first and keep the second. */
function aroundThinking(content: string, mark: (text: string) => string): string {
  const parts = content.split(/(<\/?think>|\[\/?THINK\])/);
  return parts
    .map((part, k) => {
      if (k % 2 === 1) return part;
      // Blanks next to a thinking mark are the template's to change.
      const said = k === 0 ? part : part.trimStart();
      const text = k === parts.length - 1 ? said : said.trimEnd();
      const before = part.slice(0, part.length - said.length);
      return before + mark(text) + said.slice(text.length);
    })
    .join('');
}

/** As a string of JSON has it, without its quotation marks. */
const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);

/** JSON with blanks behind commas and colons, as the templates' own filter writes it. */
function pythonJson(value: Json | JsonObject): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}: ${pythonJson(inner)}`);
  return `{${members.join(', ')}}`;
}
