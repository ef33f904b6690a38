/** The clipped policy loss with a KL term, and the reinforce loss, over a batch of grouped trajectories. */
import { Invalid } from '../errors';
import { type AdvantageOptions, computeAdvantages } from './advantages';
import {
  ABOVE,
  addTokens,
  BELOW,
  CAPPED,
  FLOORED,
  type KlKind,
  type Logprobs,
  POLICY,
  type ScoredTokens,
  SUMS_PER_STEP,
  TOKENS,
} from './token-sums';
import { isCounted, type TrainingTrajectory } from './trajectory';

export const DENOMINATORS = ['ref', 'old'] as const;
export type Denominator = (typeof DENOMINATORS)[number];
export const KL_KINDS: readonly KlKind[] = ['k1', 'k2', 'k3'];
export const AGGREGATES = ['trajectory-sum', 'token-mean', 'trajectory-mean'] as const;
export type Aggregate = (typeof AGGREGATES)[number];

export interface LossOptions {
  /** `ref`: ratio against the frozen reference; `old`: against what the engine reported while sampling. */
  denominator: Denominator;
  clipLow: number;
  clipHigh: number;
  klCoef: number;
  kl: KlKind;
  aggregate: Aggregate;
}

export const DEFAULT_LOSS_OPTIONS: LossOptions = {
  denominator: 'ref',
  clipLow: 0.2,
  clipHigh: 0.2,
  klCoef: 0.01,
  kl: 'k3',
  aggregate: 'trajectory-sum',
};

/** The field names of the command's output. */
export interface LossFigures {
  policy_loss: number;
  /** Null where the options use no reference (`--denominator old --kl-coef 0`). */
  kl: number | null;
  loss: number;
  reinforce_loss: number;
  clip_fraction: number;
  ratio_mean: number;
  /** Tokens with mask 1. */
  masked_tokens: number;
  /** Masked tokens at which an exponent was clamped to ±20. */
  clamped: number;
}

export interface LossReport extends LossFigures {
  /** trajectory id → advantage of each step. */
  advantages: Record<string, number[]>;
  groups_without_signal: number;
}

/** One token sequence with its log-probabilities; only the columns the options use need to be there. */
export interface LossSequence {
  sequenceIndex: number | null;
  mask: Uint8Array;
  stepIndex: Int32Array;
  logprobs: Logprobs | null;
  policyLogprobs: Logprobs | null;
  refLogprobs: Logprobs | null;
}

/** Which columns these options read. */
export function neededLogprobs(options: LossOptions): { policy: true; ref: boolean; old: boolean } {
  return {
    policy: true,
    ref: options.denominator === 'ref' || options.klCoef !== 0,
    old: options.denominator === 'old',
  };
}

/** Reduces token sequences as they come; holds a few numbers a step, whatever the number of tokens. */
export class LossSums {
  readonly #options: LossOptions;
  readonly #needed: ReturnType<typeof neededLogprobs>;
  readonly #rows = new Map<string, { first: number; steps: number }>();
  #table = new Float64Array(1024 * SUMS_PER_STEP);
  #usedRows = 0;
  readonly #whole = { ratio: 0, kl: 0, clamped: 0 };

  constructor(options: LossOptions) {
    if (!(options.clipLow >= 0 && options.clipHigh >= 0 && Number.isFinite(options.clipLow + options.clipHigh)))
      throw new Invalid('The clip range must be numbers of at least 0.');
    if (!Number.isFinite(options.klCoef)) throw new Invalid('The KL coefficient must be a number.');
    this.#options = options;
    this.#needed = neededLogprobs(options);
  }

  /**
   * A trajectory that does not count adds nothing, not even to N. A sequence without a sampled token adds nothing
   * either and needs no log-probabilities; its trajectory still counts in N.
   */
  add(trajectory: TrainingTrajectory, sequence: LossSequence): void {
    if (!isCounted(trajectory) || !sequence.mask.includes(1)) return;
    const { first, steps } = this.#rowsOf(trajectory);
    addTokens(this.#scored(trajectory.trajectoryId, sequence), this.#options, this.#table, first, steps, this.#whole);
  }

  /**
   * @param advantages by trajectory id, as `computeAdvantages` gives them; every counted trajectory is in it.
   * Throws Invalid when no token of the batch was sampled.
   */
  finish(advantages: ReadonlyMap<string, readonly number[]>): LossFigures {
    const table = this.#table;
    let objective = 0;
    let meanObjective = 0;
    let reinforce = 0;
    let clips = 0;
    let masked = 0;
    for (const [trajectoryId, own] of advantages) {
      const rows = this.#rows.get(trajectoryId);
      if (!rows) continue;
      let ownObjective = 0;
      let ownTokens = 0;
      for (let step = 0; step < rows.steps; step++) {
        const at = (rows.first + step) * SUMS_PER_STEP;
        const a = own[step] ?? 0;
        ownTokens += table[at + TOKENS] as number;
        reinforce += a * (table[at + POLICY] as number);
        if (a > 0) {
          ownObjective += a * (table[at + CAPPED] as number);
          clips += table[at + ABOVE] as number;
        } else if (a < 0) {
          ownObjective += a * (table[at + FLOORED] as number);
          clips += table[at + BELOW] as number;
        }
      }
      objective += ownObjective;
      masked += ownTokens;
      if (ownTokens > 0) meanObjective += ownObjective / ownTokens;
    }
    if (masked === 0)
      throw new Invalid(
        'The batch has no trainable token: no trajectory that is completed or truncated and not edited by a person has a ' +
          'token with generation_mask 1.',
      );
    const count = advantages.size;
    const { aggregate, klCoef } = this.#options;
    const gain =
      aggregate === 'trajectory-sum'
        ? objective / count
        : aggregate === 'token-mean'
          ? objective / masked
          : meanObjective / count;
    const kl = this.#needed.ref ? this.#whole.kl / masked : null;
    const policyLoss = 0 - gain;
    return {
      policy_loss: policyLoss,
      kl,
      loss: policyLoss + klCoef * (kl ?? 0),
      reinforce_loss: 0 - reinforce / masked,
      clip_fraction: clips / masked,
      ratio_mean: this.#whole.ratio / masked,
      masked_tokens: masked,
      clamped: this.#whole.clamped,
    };
  }

  #rowsOf(trajectory: TrainingTrajectory): { first: number; steps: number } {
    const known = this.#rows.get(trajectory.trajectoryId);
    if (known) return known;
    const rows = { first: this.#usedRows, steps: trajectory.stepRewards.length };
    this.#usedRows += rows.steps;
    if (this.#usedRows * SUMS_PER_STEP > this.#table.length) {
      const larger = new Float64Array(2 * this.#usedRows * SUMS_PER_STEP);
      larger.set(this.#table);
      this.#table = larger;
    }
    this.#rows.set(trajectory.trajectoryId, rows);
    return rows;
  }

  #scored(trajectoryId: string, sequence: LossSequence): ScoredTokens {
    const { mask, stepIndex, policyLogprobs: policy } = sequence;
    const byOld = this.#options.denominator === 'old';
    const denominator = byOld ? sequence.logprobs : sequence.refLogprobs;
    const ref = this.#needed.ref ? sequence.refLogprobs : null;
    const missing = !policy ? 'policy_logprobs' : !denominator ? (byOld ? 'logprobs' : 'ref_logprobs') : null;
    if (!policy || !denominator || (this.#needed.ref && !ref))
      throw new Invalid(`Trajectory ${trajectoryId} has no ${missing ?? 'ref_logprobs'}, which these options use.`, {
        trajectoryId,
      });
    const n = mask.length;
    if (stepIndex.length !== n || policy.length !== n || denominator.length !== n || (ref && ref.length !== n))
      throw new Invalid(`Trajectory ${trajectoryId}: its token columns are not of one length.`, { trajectoryId });
    const names = {
      trajectoryId,
      sequenceIndex: sequence.sequenceIndex,
      denominator: byOld ? 'logprobs' : 'ref_logprobs',
    };
    return { mask, stepIndex, policy, denominator, ref, names };
  }
}

/** Advantages and loss of a batch that is in memory. A trajectory has one or more sequences. */
export function computeLoss(
  batch: readonly { trajectory: TrainingTrajectory; sequences: readonly LossSequence[] }[],
  options: Partial<LossOptions & AdvantageOptions> = {},
): LossReport {
  const advantages = computeAdvantages(
    batch.map((entry) => entry.trajectory),
    options,
  );
  const sums = new LossSums({ ...DEFAULT_LOSS_OPTIONS, ...options });
  for (const { trajectory, sequences } of batch) for (const sequence of sequences) sums.add(trajectory, sequence);
  return {
    advantages: Object.fromEntries(advantages.byTrajectory),
    ...sums.finish(advantages.byTrajectory),
    groups_without_signal: advantages.groupsWithoutSignal,
  };
}
