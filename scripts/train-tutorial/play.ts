/**
 * Plays one game with the trained policy through llama.cpp, by the rules of the harness: a turn is sampled until its stop
 * string, its end-of-turn token or the token limit; a call is answered behind the stop string; a turn that ended otherwise
 * without an answer gets its observation as a new user message; after `maxRounds` turns without an answer the game is over.
 */
import type { LlamaContextSequence, LlamaModel, Token } from 'node-llama-cpp';
import type { ParsedTurn } from '../../server/core/actions/format';
import { formatNamed } from '../../server/core/actions/formats';
import { parseReact } from '../../server/core/actions/react';
import type { Skill } from '../../server/core/skills/skill';
import { END_OF_TURN, type Encode, encodeObservation, encodeOpening } from './conversation';
import { answerCall, type SearchTask } from './search-task';

export interface Game {
  ending: 'right' | 'wrong' | 'round limit';
  turns: number;
  /** search_progress of each turn, 0 for a turn without a probe that was understood. */
  progress: number[];
  calls: number;
  /** Calls that could not be read, or that the tool refused. */
  refusedCalls: number;
  /** Turns with neither call nor answer. */
  emptyTurns: number;
  text: string;
  ids: number[];
  /** As sampled, natural log; NaN for what the policy did not write. */
  logprobs: number[];
}

export interface Player {
  model: LlamaModel;
  sequence: LlamaContextSequence;
  encode: Encode;
  skill: Skill;
}

export async function play(player: Player, task: SearchTask, seed: number): Promise<Game> {
  const { encode, skill, sequence } = player;
  await sequence.clearHistory();
  const ids = encodeOpening(encode, skill, task.prompt);
  const game: Game = {
    ending: 'round limit',
    turns: 0,
    progress: [],
    calls: 0,
    refusedCalls: 0,
    emptyTurns: 0,
    text: '',
    ids,
    logprobs: ids.map(() => Number.NaN),
  };
  let known = { low: task.low, high: task.high };
  while (game.turns < skill.maxRounds) {
    const turn = await sampleTurn(player, game, seed + game.turns);
    game.turns++;
    game.text += turn.text;
    const { parsed } = turn;
    if (parsed.answer) {
      game.ending = parsed.answer.number === task.secret ? 'right' : 'wrong';
      game.progress.push(0);
      return game;
    }
    const reply = answerCalls(parsed, task, game);
    game.progress.push(reply.n === null ? 0 : progressOf(known, reply.n, task.secret));
    if (reply.n !== null) known = narrow(known, reply.n, task.secret);
    const next =
      turn.end === 'stop'
        ? encodeObservation(encode, reply.text)
        : [
            ...encode(`${turn.end === 'eos' ? '' : END_OF_TURN}\n<|im_start|>user\n`, true),
            ...encode(`Observation: ${reply.text}`, false),
            ...encode(`${END_OF_TURN}\n<|im_start|>assistant\n`, true),
          ];
    game.text += ` ${reply.text}\n`;
    game.ids.push(...next);
    for (const _ of next) game.logprobs.push(Number.NaN);
  }
  return game;
}

/** Samples one turn behind `game.ids` and appends what it wrote there. */
async function sampleTurn(
  { model, sequence, skill }: Player,
  game: Game,
  seed: number,
): Promise<{ text: string; parsed: ParsedTurn; end: 'stop' | 'eos' | 'length' }> {
  const { temperature, topP, topK, minP, maxTokensPerTurn } = skill.sampling;
  const stops = formatNamed('react').stopStrings(skill);
  const options = { temperature, topP, topK, minP, seed, yieldEogToken: true };
  const written: Token[] = [];
  const prompt = game.ids.slice(sequence.nextTokenIndex) as Token[];
  let end: 'stop' | 'eos' | 'length' = 'length';
  for await (const { token, confidence } of sequence.evaluateWithMetadata(prompt, { confidence: true }, options)) {
    written.push(token);
    game.logprobs.push(Math.log(confidence));
    if (model.isEogToken(token)) end = 'eos';
    else if (stops.some((stop) => model.detokenize(written).endsWith(stop))) end = 'stop';
    if (end !== 'length' || written.length >= maxTokensPerTurn) break;
  }
  game.ids.push(...written);
  const text = model.detokenize(end === 'eos' ? written.slice(0, -1) : written);
  const stop = end === 'stop' ? stops.find((candidate) => text.endsWith(candidate)) : undefined;
  const own = stop === undefined ? text : text.slice(0, -stop.length);
  return { text, parsed: parseReact(new TextEncoder().encode(own), end === 'eos' ? null : end), end };
}

/** The observation of a turn's calls, and the number of the last one that was understood. */
function answerCalls(parsed: ParsedTurn, task: SearchTask, game: Game): { text: string; n: number | null } {
  if (parsed.calls.length === 0) {
    game.emptyTurns++;
    return { text: `error: ${parsed.problem}`, n: null };
  }
  let n: number | null = null;
  const texts = parsed.calls.map((call) => {
    const answer = answerCall(task.secret, call);
    game.calls++;
    if (answer.n === null) game.refusedCalls++;
    else n = answer.n;
    return answer.observation;
  });
  return { text: texts.join('\n'), n };
}

interface Interval {
  low: number;
  high: number;
}

const sizeOf = ({ low, high }: Interval): number => high - low + 1;

function narrow(known: Interval, n: number, secret: number): Interval {
  if (n === secret) return { low: n, high: n };
  return n < secret
    ? { low: Math.max(known.low, n + 1), high: known.high }
    : { low: known.low, high: Math.min(known.high, n - 1) };
}

/** The scorer `search_progress`: the share of what was possible that the probe ruled out; 1 when it found the number. */
export function progressOf(known: Interval, n: number, secret: number): number {
  if (n === secret) return 1;
  if (n < known.low || n > known.high) return 0;
  return 1 - sizeOf(narrow(known, n, secret)) / sizeOf(known);
}
