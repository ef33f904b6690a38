/** Advantages and loss over ten million tokens, against a bare loop of one Math.exp a token. */
import { seededRandom } from '../server/core/ambient';
import { computeLoss, type LossOptions, type LossSequence } from '../server/core/training/loss';
import type { TrainingTrajectory } from '../server/core/training/trajectory';
import { compareSpeed, type Figure, printReport, progress } from './figure';

const GROUP_SIZE = 8;
const GROUPS = 1000;
const STEPS = 10;
/** Tokens of a step: sampled ones, then the observation. */
const STEP_TOKENS = 125;
const TOKENS = GROUPS * GROUP_SIZE * STEPS * STEP_TOKENS;
const TURNS = 7;

interface Batch {
  entries: { trajectory: TrainingTrajectory; sequences: LossSequence[] }[];
  policy: Float32Array;
}

function makeBatch(sampledPerStep: number): Batch {
  const random = seededRandom(7);
  const mask = new Uint8Array(TOKENS);
  const stepIndex = new Int32Array(TOKENS);
  const logprobs = new Float32Array(TOKENS);
  const policy = new Float32Array(TOKENS);
  const ref = new Float32Array(TOKENS);
  for (let k = 0; k < TOKENS; k++) {
    stepIndex[k] = Math.floor(k / STEP_TOKENS) % STEPS;
    mask[k] = k % STEP_TOKENS < sampledPerStep ? 1 : 0;
    const value = -4 * random() ** 3 - 1e-4;
    logprobs[k] = value;
    policy[k] = value + (random() - 0.5) * 0.6;
    ref[k] = value + (random() - 0.5) * 0.6;
  }
  const length = STEPS * STEP_TOKENS;
  const entries = Array.from({ length: GROUPS * GROUP_SIZE }, (_, i) => {
    const cut = <T extends Uint8Array | Int32Array | Float32Array>(column: T): T =>
      column.subarray(i * length, (i + 1) * length) as T;
    return {
      trajectory: {
        trajectoryId: `trajectory-${i}`,
        groupId: `group-${Math.floor(i / GROUP_SIZE)}`,
        status: 'completed' as const,
        humanEdited: false,
        stepRewards: Array.from({ length: STEPS }, () => random()),
        reward: null,
        stateKeys: null,
      },
      sequences: [
        {
          sequenceIndex: 0,
          mask: cut(mask),
          stepIndex: cut(stepIndex),
          logprobs: cut(logprobs),
          policyLogprobs: cut(policy),
          refLogprobs: cut(ref),
        },
      ],
    };
  });
  return { entries, policy };
}

let sink = 0;

function bareLoop(column: Float32Array): void {
  let sum = 0;
  for (let k = 0; k < column.length; k++) sum += Math.exp(column[k] as number);
  sink += sum;
}

function measure(batch: Batch, options: Partial<LossOptions>, least: number): Figure {
  return compareSpeed({
    items: TOKENS,
    turns: TURNS,
    unit: 'million tokens/s',
    least,
    measured: () => {
      sink += computeLoss(batch.entries, options).loss;
    },
    baseline: () => bareLoop(batch.policy),
  });
}

const figures: Record<string, Figure> = {};
for (const [name, sampled] of [
  ['masked 72%', 90],
  ['all masked', STEP_TOKENS],
] as const) {
  progress(`training: ${name}`);
  const batch = makeBatch(sampled);
  figures[`training: loss, ${name}`] = measure(batch, {}, 0.5);
  // Two exponentials a token: the ratio against the sampling policy, the KL against the reference.
  const separate = measure(batch, { denominator: 'old' }, 0.5);
  figures[`training: loss against old with KL to ref, ${name}`] = { ...separate, target: null, met: null };
}
if (!Number.isFinite(sink)) throw new Error(`The sums are no numbers: ${sink}.`);
printReport({ figures });
