/** The demonstrations as token ids, in shared memory so that every worker reads the same ones. */
import type { Skill } from '../../server/core/skills/skill';
import { END_OF_TURN, type Encode, encodeObservation, encodeOpening } from './conversation';
import type { Demonstration } from './demonstrations';

export interface Corpus {
  /** All sequences end to end. */
  ids: Int32Array;
  /** 1 where the policy wrote the token: only these are learnt. */
  sampled: Uint8Array;
  /** Sequence i runs from starts[i] to starts[i + 1]. */
  starts: Int32Array;
}

const CONTROL_TOKEN = /<\|\w+\|>/;

export interface EncodedDemonstration {
  ids: number[];
  sampled: boolean[];
}

export function encodeDemonstration(encode: Encode, skill: Skill, demonstration: Demonstration): EncodedDemonstration {
  const ids = encodeOpening(encode, skill, demonstration.task.prompt);
  const sampled = ids.map(() => false);
  const append = (more: readonly number[], wrote: boolean) => {
    ids.push(...more);
    for (let i = 0; i < more.length; i++) sampled.push(wrote);
  };
  for (const { text, observation } of demonstration.turns) {
    append(encode(text, false), true);
    if (observation === null) append(encode(END_OF_TURN, true), true);
    else append(encodeObservation(encode, observation), false);
  }
  return { ids, sampled };
}

export function packCorpus(sequences: readonly EncodedDemonstration[]): Corpus {
  const total = sequences.reduce((sum, { ids }) => sum + ids.length, 0);
  const corpus: Corpus = {
    ids: new Int32Array(new SharedArrayBuffer(total * 4)),
    sampled: new Uint8Array(new SharedArrayBuffer(total)),
    starts: new Int32Array(new SharedArrayBuffer((sequences.length + 1) * 4)),
  };
  let at = 0;
  sequences.forEach(({ ids, sampled }, i) => {
    corpus.ids.set(ids, at);
    sampled.forEach((wrote, j) => {
      corpus.sampled[at + j] = wrote ? 1 : 0;
    });
    at += ids.length;
    corpus.starts[i + 1] = at;
  });
  return corpus;
}

/** The same texts as they are, for learning the vocabulary, with how often each occurs. */
export function corpusTexts(skill: Skill, demonstrations: readonly Demonstration[]): Map<string, number> {
  const texts = new Map<string, number>();
  // Standing in for the tokenizer: it only listens.
  const listen: Encode = (text, special) => {
    for (const part of special ? text.split(CONTROL_TOKEN) : [text]) texts.set(part, (texts.get(part) ?? 0) + 1);
    return [];
  };
  for (const demonstration of demonstrations) encodeDemonstration(listen, skill, demonstration);
  return texts;
}
