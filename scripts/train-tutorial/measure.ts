/** Measures the policy as it is served: sampled games through llama.cpp, and how its numbers agree with the trainer's. */
import type { Llama } from 'node-llama-cpp';
import type { Skill } from '../../server/core/skills/skill';
import { EXACT } from '../../server/inference/embedded/arithmetic';
import type { LlamaShape } from '../../server/inference/gguf/llama';
import { modelMemory } from './activations';
import type { Encode } from './conversation';
import { Kernels } from './kernels/kernels';
import { Model } from './model';
import { type Game, play } from './play';
import type { SearchTask } from './search-task';

export interface Measurement {
  games: number;
  right: number;
  wrong: number;
  roundLimit: number;
  meanTurns: number;
  calls: number;
  refusedCalls: number;
  emptyTurns: number;
  /** Longest game in tokens. */
  longest: number;
  /** Groups (games of one task) in which some ended right and some did not. */
  mixedGroups: number;
  /** Groups whose games differ in their mean search progress. */
  groupsWithDifferentProgress: number;
  groups: number;
  /** Sampled tokens a second. */
  tokensPerSecond: number;
  examples: string[];
  sampled: readonly Pick<Game, 'ids' | 'logprobs'>[];
}

/**
 * Each game has a context of its own. Several sequences of one context would share a batch, and node-llama-cpp samples
 * those on several threads at once while llama.cpp still sorts the batch's logits: now and then a token is then drawn from
 * the distribution of another sequence.
 */
const CONTEXTS = 4;

/** Plays every task `groupSize` times. The same seed gives the same games. */
export async function measure(input: {
  llama: Llama;
  modelPath: string;
  skill: Skill;
  tasks: readonly SearchTask[];
  groupSize: number;
  seed: number;
}): Promise<Measurement> {
  const { skill, tasks, groupSize, seed } = input;
  const model = await input.llama.loadModel({ modelPath: input.modelPath });
  const encode: Encode = (text, special) => model.tokenize(text, special);
  const games = new Array<Game>(tasks.length * groupSize);
  let next = 0;
  const started = performance.now();
  const runners = Array.from({ length: CONTEXTS }, async () => {
    const context = await model.createContext({ contextSize: model.trainContextSize, threads: 1, ...EXACT });
    const sequence = context.getSequence();
    while (next < games.length) {
      const index = next++;
      const task = tasks[Math.floor(index / groupSize)] as SearchTask;
      games[index] = await play({ model, sequence, encode, skill }, task, seed + index * 64);
    }
    await context.dispose();
  });
  await Promise.all(runners);
  const seconds = (performance.now() - started) / 1000;
  await model.dispose();
  return summarise(games, groupSize, seconds);
}

function summarise(games: readonly Game[], groupSize: number, seconds: number): Measurement {
  const count = (ending: Game['ending']) => games.filter((game) => game.ending === ending).length;
  const sum = (value: (game: Game) => number) => games.reduce((total, game) => total + value(game), 0);
  const groups = Array.from({ length: games.length / groupSize }, (_, i) =>
    games.slice(i * groupSize, (i + 1) * groupSize),
  );
  const meanProgress = ({ progress }: Game) => progress.reduce((a, b) => a + b, 0) / Math.max(1, progress.length);
  return {
    games: games.length,
    right: count('right'),
    wrong: count('wrong'),
    roundLimit: count('round limit'),
    meanTurns: sum((game) => game.turns) / games.length,
    calls: sum((game) => game.calls),
    refusedCalls: sum((game) => game.refusedCalls),
    emptyTurns: sum((game) => game.emptyTurns),
    longest: games.reduce((longest, game) => Math.max(longest, game.ids.length), 0),
    mixedGroups: groups.filter((group) => new Set(group.map((game) => game.ending === 'right')).size > 1).length,
    groupsWithDifferentProgress: groups.filter((group) => new Set(group.map(meanProgress)).size > 1).length,
    groups: groups.length,
    tokensPerSecond: sum((game) => game.logprobs.filter((value) => !Number.isNaN(value)).length) / seconds,
    examples: games.slice(0, 3).map((game) => game.text),
    sampled: games,
  };
}

/** The largest difference between the log-probabilities of sampling and those of the trainer, over the given games. */
export function largestDifference(input: {
  module: WebAssembly.Module;
  shape: LlamaShape;
  weights: ReadonlyMap<string, Float32Array>;
  games: readonly Pick<Game, 'ids' | 'logprobs'>[];
}): { tokens: number; difference: number } {
  const longest = input.games.reduce((length, { ids }) => Math.max(length, ids.length), 1);
  const limits = { tokens: longest, sequenceLength: longest };
  const model = new Model(new Kernels(input.module, modelMemory(input.shape, limits)), input.shape, limits);
  for (const [name, weight] of model.parameters.weights) weight.set(input.weights.get(name) as Float32Array);
  let tokens = 0;
  let difference = 0;
  for (const { ids, logprobs } of input.games) {
    const predicted = ids.flatMap((_, i) => (Number.isNaN(logprobs[i + 1] ?? Number.NaN) ? [] : [i]));
    const { logprobs: own } = model.run(
      {
        ids: Int32Array.from(ids),
        lengths: [ids.length],
        predicted: Int32Array.from(predicted),
        weights: new Float32Array(predicted.length),
      },
      false,
    );
    predicted.forEach((position, i) => {
      difference = Math.max(difference, Math.abs((own[i] as number) - (logprobs[position + 1] as number)));
    });
    tokens += predicted.length;
  }
  return { tokens, difference };
}
