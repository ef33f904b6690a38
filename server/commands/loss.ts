/** `studio loss FILE`: advantages and loss of a rollout batch, read line by line whatever its size. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { BatchLine } from '../core/batch/line';
import { parseBatchLine } from '../core/batch/parse';
import { Invalid } from '../core/errors';
import {
  type AdvantageOptions,
  computeAdvantages,
  DEFAULT_ADVANTAGE_OPTIONS,
  ESTIMATORS,
} from '../core/training/advantages';
import {
  AGGREGATES,
  DEFAULT_LOSS_OPTIONS,
  DENOMINATORS,
  KL_KINDS,
  type LossOptions,
  type LossReport,
  type LossSequence,
  LossSums,
  neededLogprobs,
} from '../core/training/loss';
import { isCounted, type TrainingTrajectory } from '../core/training/trajectory';
import { readLines } from './read-lines';

export type LossCommandOptions = LossOptions &
  AdvantageOptions & {
    /** Lets `logprobs` stand for policy or reference log-probabilities that are absent. */
    assumeOnPolicy: boolean;
  };

export const DEFAULT_LOSS_COMMAND_OPTIONS: LossCommandOptions = {
  ...DEFAULT_LOSS_OPTIONS,
  ...DEFAULT_ADVANTAGE_OPTIONS,
  assumeOnPolicy: false,
};

/** What may be given, as `addLossOptions` declares it: `clip` sets both ends that are not set themselves. */
export type GivenLossOptions = Partial<LossCommandOptions> & { clip?: number };

/** Throws Invalid with the line where the file is wrong, NotFound when there is none. */
export async function runLoss(path: string, options: GivenLossOptions = {}): Promise<LossReport> {
  const settings = withDefaults(options);
  const sums = new LossSums(settings);
  const book = new TrajectoryBook();
  let lineNumber = 0;
  for await (const text of readLines(path)) {
    lineNumber++;
    if (text.trim() === '') continue;
    const line = parseBatchLine(text, lineNumber);
    const trajectory = book.enter(line, lineNumber);
    // Without a sampled token there is nothing to score: no column is asked for.
    if (!isCounted(trajectory) || !line.tokens.mask.includes(1)) continue;
    try {
      sums.add(trajectory, columnsOf(line, settings));
    } catch (problem) {
      if (problem instanceof Invalid)
        throw new Invalid(`Line ${lineNumber}: ${problem.message}`, { ...problem.details, line: lineNumber });
      throw problem;
    }
  }
  const advantages = computeAdvantages(book.trajectories(), settings);
  return {
    advantages: Object.fromEntries(advantages.byTrajectory),
    ...sums.finish(advantages.byTrajectory),
    groups_without_signal: advantages.groupsWithoutSignal,
  };
}

/** The trajectories met so far. Lines of one trajectory repeat its facts and count once. */
class TrajectoryBook {
  readonly #entries = new Map<string, { trajectory: TrainingTrajectory; line: number; sequences: Set<number> }>();

  enter(line: BatchLine, lineNumber: number): TrainingTrajectory {
    const known = this.#entries.get(line.trajectoryId);
    const sequences = known?.sequences ?? new Set<number>();
    if (line.sequenceIndex !== null) {
      if (sequences.has(line.sequenceIndex))
        throw new Invalid(
          `Line ${lineNumber}: sequence ${line.sequenceIndex} of trajectory ${line.trajectoryId} is in the file twice.`,
        );
      sequences.add(line.sequenceIndex);
    }
    const trajectory: TrainingTrajectory = {
      trajectoryId: line.trajectoryId,
      groupId: line.groupId,
      status: line.status,
      humanEdited: line.humanEdited,
      stepRewards: line.stepRewards ?? [],
      reward: line.reward,
      stateKeys: line.stateKeys,
    };
    if (!known) {
      this.#entries.set(line.trajectoryId, { trajectory, line: lineNumber, sequences });
      return trajectory;
    }
    for (const [key, name] of SHARED_FACTS)
      if (JSON.stringify(trajectory[key]) !== JSON.stringify(known.trajectory[key]))
        throw new Invalid(
          `Line ${lineNumber}: ${name} of trajectory ${line.trajectoryId} differs from line ${known.line}; lines of one trajectory repeat it.`,
        );
    return known.trajectory;
  }

  trajectories(): TrainingTrajectory[] {
    return [...this.#entries.values()].map((entry) => entry.trajectory);
  }
}

const SHARED_FACTS: [keyof TrainingTrajectory, string][] = [
  ['groupId', 'group_id'],
  ['status', 'status'],
  ['humanEdited', 'human_edited'],
  ['stepRewards', 'step_rewards'],
  ['reward', 'reward'],
  ['stateKeys', 'state_keys'],
];

/** The columns the options use, `logprobs` standing in where that is asked for. */
function columnsOf(
  { tokens, trajectoryId, sequenceIndex, logprobKind }: BatchLine,
  settings: LossCommandOptions,
): LossSequence {
  const needed = neededLogprobs(settings);
  const standIn = settings.assumeOnPolicy ? tokens.logprobs : null;
  const policyLogprobs = tokens.policyLogprobs ?? standIn;
  const refLogprobs = needed.ref ? (tokens.refLogprobs ?? standIn) : null;
  const missing = [
    ...(policyLogprobs ? [] : ['policy_logprobs']),
    ...(needed.ref && !refLogprobs ? ['ref_logprobs'] : []),
    ...(needed.old && !tokens.logprobs ? ['logprobs'] : []),
  ];
  if (missing.length > 0)
    throw new Invalid(
      `trajectory ${trajectoryId} has no ${missing.join(' and no ')}, which these options use. ${advice(missing, tokens.logprobs !== null)}`,
      {
        trajectoryId,
        missing,
      },
    );
  const used = [policyLogprobs, refLogprobs, needed.old ? tokens.logprobs : null].filter((column) => column !== null);
  const fromSampler = used.filter((column) => column === tokens.logprobs).length;
  if (fromSampler > 0 && fromSampler < used.length && logprobKind !== null && logprobKind !== 'raw')
    throw new Invalid(
      `trajectory ${trajectoryId} has logprobs of kind ${logprobKind}; they cannot be compared with raw log-probabilities of the policy or ` +
        'the reference. Score the sampled tokens again, or use options that do not read logprobs.',
      { trajectoryId, logprobKind },
    );
  const { mask, stepIndex, logprobs } = tokens;
  return { sequenceIndex, mask, stepIndex, logprobs, policyLogprobs, refLogprobs };
}

function advice(missing: string[], hasSampled: boolean): string {
  if (missing.includes('logprobs'))
    return 'Without the log-probabilities of the sampler only --denominator ref can be used.';
  if (hasSampled)
    return 'Fill them in with studio score (or in your trainer), or pass --assume-on-policy to let logprobs stand for them.';
  return 'Fill them in with studio score, or in your trainer; there are no logprobs either that could stand for them.';
}

/** Declares the options on a command; what commander reads of them is what `runLoss` takes. */
export function addLossOptions(command: Command): Command {
  const d = DEFAULT_LOSS_COMMAND_OPTIONS;
  return command
    .addOption(new Option('--estimator <name>', 'how advantages are computed').choices(ESTIMATORS).default(d.estimator))
    .option('--unbiased', 'standard deviations with divisor n - 1')
    .option('--step-weight <number>', 'weight of the step term of anchor-state', finiteNumber, d.stepWeight)
    .option('--gamma <number>', 'discount of the returns of anchor-state', finiteNumber, d.gamma)
    .addOption(
      new Option('--denominator <name>', 'ratio against the reference (ref) or the sampler (old)')
        .choices(DENOMINATORS)
        .default(d.denominator),
    )
    .option('--clip <number>', `clip range on both sides (${d.clipLow} when absent)`, notNegative)
    .option('--clip-low <number>', 'clip range below 1, instead of --clip', notNegative)
    .option('--clip-high <number>', 'clip range above 1, instead of --clip', notNegative)
    .option('--kl-coef <number>', 'weight of the KL term', finiteNumber, d.klCoef)
    .addOption(new Option('--kl <name>', 'estimator of the KL term').choices(KL_KINDS).default(d.kl))
    .addOption(new Option('--aggregate <name>', 'how tokens are averaged').choices(AGGREGATES).default(d.aggregate))
    .option('--assume-on-policy', 'let logprobs stand for policy and reference log-probabilities that are absent');
}

function withDefaults({ clip, clipLow, clipHigh, ...rest }: GivenLossOptions): LossCommandOptions {
  const d = DEFAULT_LOSS_COMMAND_OPTIONS;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  return { ...d, ...given, clipLow: clipLow ?? clip ?? d.clipLow, clipHigh: clipHigh ?? clip ?? d.clipHigh };
}

function finiteNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('It must be a number.');
  return value;
}

function notNegative(text: string): number {
  const value = finiteNumber(text);
  if (value < 0) throw new InvalidArgumentError('It must be at least 0.');
  return value;
}
