/**
 * Builds the ids the model sees. Nothing that was sampled is ever encoded again: a prompt is encoded once, and what
 * comes between two turns is found by rendering the model's own template with and without the new message and
 * encoding only the text between.
 *
 * What a person, a task or a tool wrote is encoded with control strings off. To find it in the rendered template it is
 * rendered under a random mark first and put in its place afterwards, so it cannot imitate the template.
 */
import type { ChatMessage } from '../core/events';
import type { TokenChunk } from '../core/tokens/chunk';
import { type SegmentKind, segmentCode } from '../core/vocabulary';
import type { EncodedText, InferenceBackend } from '../inference/backend';

type Encoder = Pick<InferenceBackend, 'tokenize' | 'applyTemplate'>;

interface Piece {
  text: string;
  kind: SegmentKind;
  /** Whether control strings in it are control tokens: true for what the template wrote, false for everything else. */
  special: boolean;
}

/**
 * The prompt of a new token sequence: mask 0, step -1. The template sees what earlier assistant turns really said (it
 * may drop parts, such as thinking blocks); of each, the part it kept is encoded as plain text.
 */
export async function encodePrompt(
  backend: Encoder,
  messages: ChatMessage[],
  random: () => number,
): Promise<TokenChunk> {
  const marks = messages.map((_, i) => mark(i, random));
  const rendered = await backend.applyTemplate(
    messages.map((m, i) => ({
      role: m.role,
      content: m.role === 'assistant' ? m.content + marks[i] : (marks[i] as string),
    })),
    { addGenerationPrompt: true },
  );
  return encodePieces(backend, splitAtMarks(rendered, messages, marks), -1);
}

/** What stands between a turn that ended at `Observation:` and the next: the observation itself. */
export function encodeInTurn(backend: Encoder, text: string, step: number): Promise<TokenChunk> {
  return encodePieces(backend, [{ text, kind: 'observation', special: false }], step);
}

/**
 * What stands between a turn that ended by itself and the next: closing tokens, the new message, the opening of the
 * next turn. Null when the template does not extend what it rendered before (it rewrote an earlier turn): then a new
 * token sequence begins.
 * @param before the conversation up to the turn, @param turn the turn's whole text
 * @param endOfTurn text of the end-of-turn token when the model sampled it, else null
 */
export async function encodeNextMessage(
  backend: Encoder,
  input: {
    before: ChatMessage[];
    turn: string;
    endOfTurn: string | null;
    message: ChatMessage;
    step: number;
    random: () => number;
  },
): Promise<TokenChunk | null> {
  const { before, turn, endOfTurn, message } = input;
  const ours = mark(before.length, input.random);
  const prompt = await backend.applyTemplate(before, { addGenerationPrompt: true });
  const after = await backend.applyTemplate(
    [...before, { role: 'assistant', content: turn }, { role: message.role, content: ours }],
    {
      addGenerationPrompt: true,
    },
  );
  const sampled = prompt + turn;
  if (!after.startsWith(sampled)) return null;
  let rest = after.slice(sampled.length);
  if (endOfTurn !== null) {
    if (!rest.startsWith(endOfTurn)) return null;
    rest = rest.slice(endOfTurn.length);
  }
  if (!rest.includes(ours)) return null;
  return encodePieces(backend, splitAtMarks(rest, [message], [ours]), input.step, 'observation');
}

function mark(i: number, random: () => number): string {
  const noise = Array.from({ length: 4 }, () => Math.floor(random() * 0x100000000).toString(36)).join('');
  return `m${i}x${noise}x`;
}

function splitAtMarks(rendered: string, messages: ChatMessage[], marks: string[]): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  messages.forEach((message, i) => {
    const found = rendered.indexOf(marks[i] as string, at);
    // A template may leave a message out (an empty system message); then there is nothing to put in its place.
    if (found === -1) return;
    const kept = message.role === 'assistant' ? commonEnd(message.content, rendered.slice(at, found)) : 0;
    const content =
      message.role === 'assistant' ? message.content.slice(message.content.length - kept) : message.content;
    const kind = message.role === 'system' || message.role === 'user' ? message.role : 'template';
    pieces.push({ text: rendered.slice(at, found - kept), kind: 'template', special: true });
    pieces.push({ text: content, kind, special: false });
    at = found + (marks[i] as string).length;
  });
  pieces.push({ text: rendered.slice(at), kind: 'template', special: true });
  return pieces.filter((piece) => piece.text !== '');
}

/** How many characters two strings share at their end. */
function commonEnd(a: string, b: string): number {
  let n = 0;
  while (n < a.length && n < b.length && a[a.length - 1 - n] === b[b.length - 1 - n]) n++;
  return n;
}

async function encodePieces(
  backend: Encoder,
  pieces: Piece[],
  step: number,
  contentKind?: SegmentKind,
): Promise<TokenChunk> {
  const encoded = await Promise.all(pieces.map((piece) => backend.tokenize(piece.text, { special: piece.special })));
  return unsampledChunk(
    encoded.map((text, i) => {
      const { kind, special } = pieces[i] as Piece;
      return { text, kind: contentKind && !special ? contentKind : kind };
    }),
    step,
  );
}

/** Tokens the policy did not sample: mask 0, no log-probability. */
function unsampledChunk(parts: { text: EncodedText; kind: SegmentKind }[], step: number): TokenChunk {
  const n = parts.reduce((sum, part) => sum + part.text.ids.length, 0);
  const byteCount = parts.reduce((sum, part) => sum + part.text.bytes.length, 0);
  const chunk: TokenChunk = {
    ids: new Int32Array(n),
    logprobs: new Float32Array(n).fill(Number.NaN),
    mask: new Uint8Array(n),
    stepIndex: new Int32Array(n).fill(step),
    segment: new Uint8Array(n),
    bytes: new Uint8Array(byteCount),
    byteEnds: new Uint32Array(n),
  };
  let at = 0;
  let byteAt = 0;
  for (const { text, kind } of parts) {
    chunk.ids.set(text.ids, at);
    chunk.segment.fill(segmentCode(kind), at, at + text.ids.length);
    chunk.bytes.set(text.bytes, byteAt);
    for (let i = 0; i < text.ids.length; i++) chunk.byteEnds[at + i] = byteAt + (text.byteEnds[i] as number);
    at += text.ids.length;
    byteAt += text.bytes.length;
  }
  return chunk;
}
