/**
 * Builds the ids the model sees. Nothing that was sampled is ever encoded again: a prompt is encoded once, and what
 * comes between two turns is found by rendering the model's own template with and without the new messages and
 * encoding only the text between. What others wrote is encoded with control strings off; see marks.ts.
 */
import type { ActionFormat } from '../core/actions/format';
import type { PromptTool } from '../core/actions/prompt';
import type { ChatMessage } from '../core/events';
import type { TokenChunk } from '../core/tokens/chunk';
import { segmentCode } from '../core/vocabulary';
import type { InferenceBackend } from '../inference/backend';
import { Marks, type Piece } from './marks';

type Encoder = Pick<InferenceBackend, 'tokenize' | 'applyTemplate'>;

/**
 * The prompt of a new token sequence: mask 0, step -1. The template sees what earlier assistant turns really said (it
 * may drop parts, such as thinking blocks); of each, the part it kept is encoded as plain text.
 * @param tools what the template is told
 */
export async function encodePrompt(
  backend: Encoder,
  messages: readonly ChatMessage[],
  random: () => number,
  tools: PromptTool[] = [],
): Promise<TokenChunk> {
  const marks = new Marks(messages, random);
  const rendered = await backend.applyTemplate(marks.messages, { addGenerationPrompt: true, tools });
  return encodePieces(backend, marks.cut(rendered), -1);
}

/** What stands between a turn that ended at `Observation:` and the next: the observation itself. */
export function encodeInTurn(backend: Encoder, text: string, step: number): Promise<TokenChunk> {
  return encodePieces(backend, [{ text, kind: 'observation', special: false, field: null }], step);
}

/**
 * What stands between a turn that ended by itself and the next: closing tokens, the new messages, the opening of the
 * next turn. Null when the template does not extend what it rendered before (it rewrote an earlier turn, or left out
 * part of this one): then a new token sequence begins.
 * @param before the conversation up to the turn, @param added the turn's own message and those behind it
 * @param endOfTurn text of the end-of-turn token when the model sampled it, else null
 */
export async function encodeReply(
  backend: Encoder,
  input: {
    format: ActionFormat;
    before: readonly ChatMessage[];
    added: readonly ChatMessage[];
    tools: PromptTool[];
    endOfTurn: string | null;
    step: number;
    random: () => number;
  },
): Promise<TokenChunk | null> {
  const { before, added, tools, format } = input;
  const marks = new Marks([...before, ...added], input.random);
  const prompt = await backend.applyTemplate(marks.messages.slice(0, before.length), {
    addGenerationPrompt: true,
    tools,
  });
  const after = await backend.applyTemplate(marks.messages, { addGenerationPrompt: true, tools });
  if (!after.startsWith(prompt)) return null;
  const pieces = marks.cut(after.slice(prompt.length));
  const kept = new Set(pieces.map((piece) => piece.field));
  if (marks.fields.some((field) => field.message >= before.length && !kept.has(field))) return null;
  const ownEnd = pieces.findLastIndex((piece) => piece.field?.message === before.length);
  const own = pieces[ownEnd]?.field ?? null;
  const [closing, ...rest] = pieces.slice(ownEnd + 1);
  // A template that writes nothing behind a turn would let the next message run into it.
  if (!closing || closing.field !== null) return null;
  const text = closingText(closing.text, own?.isArguments ? format.callEnd : null, input.endOfTurn, format.endTokens);
  if (text === null) return null;
  const following = [{ ...closing, text }, ...rest].filter((piece) => piece.text !== '');
  return encodePieces(backend, following.map(asObservation), input.step);
}

/**
 * What the template writes behind a turn, without what was sampled already: the end of its last call, and the
 * end-of-turn token, or another one that says the same. Null when it cannot be told apart.
 */
function closingText(
  text: string,
  callEnd: RegExp | null,
  endOfTurn: string | null,
  endTokens: readonly string[],
): string | null {
  const end = callEnd === null ? '' : callEnd.exec(text)?.[0];
  if (end === undefined) return null;
  const rest = text.slice(end.length);
  if (endOfTurn === null) return rest;
  const written = rest.startsWith(endOfTurn)
    ? endOfTurn
    : endTokens.includes(endOfTurn)
      ? endTokens.find((token) => rest.startsWith(token))
      : undefined;
  return written === undefined ? null : rest.slice(written.length);
}

/** What the next turn is told is its observation, whichever role the template gave it. */
const asObservation = (piece: Piece): Piece => (piece.special ? piece : { ...piece, kind: 'observation' });

/** Tokens the policy did not sample: mask 0, no log-probability. */
async function encodePieces(backend: Encoder, pieces: readonly Piece[], step: number): Promise<TokenChunk> {
  const encoded = await Promise.all(pieces.map(({ text, special }) => backend.tokenize(text, { special })));
  const n = encoded.reduce((sum, text) => sum + text.ids.length, 0);
  const byteCount = encoded.reduce((sum, text) => sum + text.bytes.length, 0);
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
  encoded.forEach(({ ids, bytes, byteEnds }, k) => {
    chunk.ids.set(ids, at);
    chunk.segment.fill(segmentCode((pieces[k] as Piece).kind), at, at + ids.length);
    chunk.bytes.set(bytes, byteAt);
    for (let i = 0; i < ids.length; i++) chunk.byteEnds[at + i] = byteAt + (byteEnds[i] as number);
    at += ids.length;
    byteAt += bytes.length;
  });
  return chunk;
}
