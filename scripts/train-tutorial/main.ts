/**
 * npm run train:tutorial -- [--seed N] [--steps N] [--out FILE] [--games N]   (--games 0: no measurement)
 *
 * Trains the small policy of the tutorial from nothing and measures it as it will be served: demonstrations → vocabulary →
 * tokens → training → a GGUF file → sampled games. The same seed gives the same file.
 */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { seededRandom } from '../../server/core/ambient';
import { type LlamaShape, llamaGguf, llamaTensorShapes } from '../../server/inference/gguf/llama';
import { encodeGguf } from '../../server/inference/gguf/write';
import { corpusTexts, encodeDemonstration, packCorpus } from './corpus';
import { readTasks } from './dataset-file';
import { demonstrate } from './demonstrations';
import { compileKernels } from './kernels/compile';
import { openLlama, openTokenizer } from './llama';
import { largestDifference, measure } from './measure';
import { readSkill } from './skill-file';
import { learnVocabulary } from './tokenizer';
import { train } from './train';

const MODEL_NAME = 'tutorial';
const SHAPE: LlamaShape = { vocabulary: 464, width: 64, layers: 3, heads: 4, hidden: 192, context: 512 };
const PLAN = { steps: 600, batch: 16, learningRate: 6e-3, warmUp: 30, shards: 2 };
const DEMONSTRATIONS = 9_600;
const GROUP_SIZE = 8;

const samples = new URL('../../samples/', import.meta.url);
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    steps: { type: 'string', default: String(PLAN.steps) },
    games: { type: 'string', default: '512' },
    out: { type: 'string', default: fileURLToPath(new URL('models/tutorial.gguf', samples)) },
  },
});
const seed = wholeNumber('seed', values.seed);
const plan = { ...PLAN, shape: SHAPE, seed, steps: wholeNumber('steps', values.steps) };
const games = wholeNumber('games', values.games);

const begun = performance.now();
const seconds = () => ((performance.now() - begun) / 1000).toFixed(1);
const say = (text: string) => console.log(`${seconds().padStart(6)} s  ${text}`);

const skill = await readSkill(new URL('skills/tutorial.yaml', samples));
const tasks = await readTasks(new URL('datasets/tutorial.jsonl', samples));
const random = seededRandom(seed);
const demonstrations = Array.from({ length: DEMONSTRATIONS }, () => demonstrate(random, skill.maxRounds));
const solved = demonstrations.filter((demonstration) => demonstration.solved).length;
say(`${DEMONSTRATIONS} demonstrations, ${percent(solved / DEMONSTRATIONS)} of them solve their task`);

const vocabulary = learnVocabulary(corpusTexts(skill, demonstrations), SHAPE.vocabulary);
const llama = await openLlama();
const scratch = await mkdtemp(join(tmpdir(), 'train-tutorial-'));
try {
  const blank = new Map(
    llamaTensorShapes(SHAPE).map(({ name, rows, columns }) => [name, new Float32Array(rows * columns)]),
  );
  const tokenizerFile = join(scratch, 'tokenizer.gguf');
  await writeFile(tokenizerFile, encodeGguf(llamaGguf({ name: MODEL_NAME, shape: SHAPE, vocabulary, weights: blank })));
  const tokenizer = await openTokenizer(llama, tokenizerFile);
  const corpus = packCorpus(
    demonstrations.map((demonstration) => encodeDemonstration(tokenizer.encode, skill, demonstration)),
  );
  await tokenizer.close();
  say(`${vocabulary.merges.length} merges learnt; ${corpus.ids.length} tokens`);

  const kernels = await compileKernels();
  say('kernels compiled; training');
  const trainingBegun = performance.now();
  let mean = 0;
  const weights = await train(kernels, plan, corpus, (step, loss) => {
    mean = step === 0 ? loss : 0.9 * mean + 0.1 * loss;
    if ((step + 1) % 50 === 0 || step + 1 === plan.steps)
      say(`step ${step + 1} of ${plan.steps}, loss ${mean.toFixed(3)} a token`);
  });
  const trainingSeconds = (performance.now() - trainingBegun) / 1000;
  const file = encodeGguf(llamaGguf({ name: MODEL_NAME, shape: SHAPE, vocabulary, weights }));
  // A running studio has the old file mapped into its memory: a new file takes its place, the old one is never written to.
  await writeFile(`${values.out}.new`, file);
  await rename(`${values.out}.new`, values.out);
  const parameters = [...weights.values()].reduce((sum, weight) => sum + weight.length, 0);
  say(`${parameters} parameters trained in ${trainingSeconds.toFixed(1)} s; ${values.out}: ${file.length} bytes`);

  if (games > 0) await reportGames(kernels, weights);
} finally {
  await rm(scratch, { recursive: true, force: true });
  await llama.dispose();
}

/** Plays the games with the file as written and prints what came of them. */
async function reportGames(
  kernels: Uint8Array<ArrayBuffer>,
  weights: ReadonlyMap<string, Float32Array>,
): Promise<void> {
  const rounds = Math.ceil(games / (tasks.length * GROUP_SIZE));
  const groups = Array.from({ length: rounds }, () => tasks).flat();
  const result = await measure({ llama, modelPath: values.out, skill, tasks: groups, groupSize: GROUP_SIZE, seed });
  const parity = largestDifference({
    module: await WebAssembly.compile(kernels),
    shape: SHAPE,
    weights,
    games: result.sampled,
  });
  for (const example of result.examples) console.log(`\n${example}`);
  console.log('');
  say(
    `${result.games} games: ${percent(result.right / result.games)} right, ${percent(result.wrong / result.games)} wrong answer, ${percent(result.roundLimit / result.games)} at the round limit`,
  );
  say(
    `${result.meanTurns.toFixed(2)} turns a game, longest ${result.longest} tokens; ${result.calls} calls, ${percent(result.refusedCalls / result.calls)} refused; ${result.emptyTurns} turns with neither call nor answer`,
  );
  say(
    `of ${result.groups} groups of ${GROUP_SIZE}: ${result.mixedGroups} with right and other endings, ${result.groupsWithDifferentProgress} with different search progress`,
  );
  say(
    `${parity.tokens} sampled tokens (${result.tokensPerSecond.toFixed(0)} a second): log-probabilities of trainer and llama.cpp differ by at most ${parity.difference.toExponential(1)}`,
  );
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0)
    throw new Error(`--${name} takes a whole number, not ${JSON.stringify(text)}.`);
  return value;
}
