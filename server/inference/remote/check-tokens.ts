/** Items of the checklist about tokens: ids in and out, text to ids to bytes, the chat template. */
import { Invalid } from '../../core/errors';
import { type Probe, sample, textOf, type Verdict } from './check-probe';
import type { RawGeneration } from './protocol';
import { quoted, quotedLines } from './server-words';
import type { TokenText } from './token-text';

/** Texts that tokenizers trip over: blanks, line ends, marks that compose, characters of four bytes, control strings. */
const HARD_TEXTS = [
  'plain words, 12 345.',
  ' a blank in front',
  '  two\n\nlines\r\n\tand a tab ',
  '你好，世界',
  'Ωμέγα e\u0301 \u2126 ﬁ',
  '\u{1F642}\u{1F468}\u200d\u{1F469}\u200d\u{1F467}',
  '\ufeff\u00a0\u200b\u2028',
  '\ufffd \u{10FFFD}',
  '{"a":[1,2.5e-3],"b":"\\n"}',
  '<|im_start|>user\n<|im_end|>',
  '</s><s>[INST] <think></think>',
  '<tool_call>{"name":"x"}</tool_call>',
];

/**
 * Ids go in and come out as they are, and what the server read has the length of what was sent.
 * @param hint said too where no answer comes
 */
export async function checkRoundTrip(probe: Probe, hint = ''): Promise<Verdict & { seeded: boolean }> {
  const once = () => sample(probe, { maxTokens: 16 }, hint);
  const [first, again] = [await once(), await once()];
  const seeded = first.ids.length > 0 && sameIds(first, again);
  if (probe.protocol.kind === 'openai')
    return {
      status: 'warn',
      seeded,
      says: 'It takes and gives text only, without token ids: counts, log-probabilities and training data from it are approximate.',
    };
  const seeds = seeded ? 'the same seed gives the same tokens' : 'the same seed may give other tokens';
  const told = `${probe.promptIds.length} ids went in and ${first.ids.length} came out, ${seeds}`;
  if (first.promptTokens === null)
    return {
      status: 'warn',
      seeded,
      says: `${told}; how many it read it does not say, so a prompt that it changes would not be seen.`,
    };
  return { status: 'pass', seeded, says: `${told}, and it read as many as were sent.` };
}

function sameIds(a: RawGeneration, b: RawGeneration): boolean {
  return a.ids.length === b.ids.length && a.ids.every((id, k) => id === b.ids[k]);
}

/** Every hard text to ids and back, as control text and as plain; and the folder's tokenizer against the server's. */
export async function checkTokenizer(probe: Probe, text: TokenText): Promise<Verdict> {
  const { protocol, http, facts, localTokenizer } = probe;
  if (protocol.kind === 'openai')
    return { status: 'absent', says: 'Text is counted in bytes, for the server does not tell its tokens.' };
  // Each throws when the bytes of the ids are not those of the text.
  await Promise.all(
    HARD_TEXTS.flatMap((each) => [text.encode(each, { special: true }), text.encode(each, { special: false })]),
  );
  if (!localTokenizer)
    return {
      status: 'pass',
      says: `${HARD_TEXTS.length} hard texts became ids and the same text again, by the routes of the server.`,
      about: '世界',
    };
  if (!protocol.tokenize)
    return {
      status: 'warn',
      says: `The tokenizer in ${localTokenizer.folder} turns hard texts into ids and back; that it is the one of the served model cannot be compared, for the server has no route for it.`,
    };
  const differ: string[] = [];
  for (const each of HARD_TEXTS) {
    const [here, there] = [localTokenizer.encode(each, true), await protocol.tokenize(http, facts, each, true)];
    if (here.length !== there.length || here.some((id, k) => id !== there[k])) differ.push(each);
  }
  const [example] = differ;
  if (example === undefined)
    return { status: 'pass', says: `The tokenizer in ${localTokenizer.folder} gives the ids that the server gives.` };
  if (differ.length < HARD_TEXTS.length / 2)
    return {
      status: 'warn',
      says: `The tokenizer in ${localTokenizer.folder} splits ${quoted(example)} in another way than the server; both say the same text.`,
    };
  throw new Invalid(
    `The tokenizer in ${localTokenizer.folder} is of another model: it has other ids for ${quoted(example)} than the server. Give the folder of the served model, or none.`,
  );
}

/** One message of a user as the model's template writes it. */
export async function checkTemplate(probe: Probe, said: string): Promise<Verdict & { rendered: string }> {
  const rendered = await textOf(probe).applyTemplate([{ role: 'user', content: said }], { addGenerationPrompt: true });
  if (!rendered.includes(said))
    throw new Invalid(`The chat template does not hold what the user said: it gave ${quoted(rendered)}.`);
  const shown = quotedLines(rendered, 120);
  const says =
    probe.protocol.kind === 'openai'
      ? `It is sent messages and puts them into a template of its own, which it does not show; the studio writes them down as ${shown}.`
      : `A conversation becomes ${shown}.`;
  return { rendered, status: 'pass', says, about: said };
}
