/** What the cells can be coloured by: the values of a channel, its scale, and why a channel may have nothing to show. */

import type { WeightSpan } from '../../server/core/tokens/chunk';
import type { WireTokens } from '../../server/core/tokens/wire';
import { divergingScale, type Scale, sequentialScale } from '../charts/scale';
import { klOf, versionAt } from './token-numbers';

export const CHANNELS = ['mask', 'logprob', 'advantage', 'ratio', 'kl', 'entropy', 'version'] as const;
export type Channel = (typeof CHANNELS)[number];

export function isChannel(text: string | null | undefined): text is Channel {
  return CHANNELS.includes(text as Channel);
}

/** Why a channel is not offered; the words are the interface's. */
export type Missing = 'noLogprobs' | 'noAdvantages' | 'noPolicyLogprobs' | 'noRefLogprobs' | 'noEntropy' | 'noVersions';

export interface ChannelSource {
  tokens: WireTokens;
  /** By step; null until the group is complete. */
  advantages: readonly (number | null)[] | null;
  /** Advantages of the whole group, so that siblings share one scale; default: `advantages`. */
  groupAdvantages?: readonly number[];
  weights: readonly WeightSpan[];
}

export function missingFor(channel: Channel, source: ChannelSource): Missing | null {
  switch (channel) {
    case 'mask':
      return null;
    case 'logprob':
      return hasNumber(source.tokens.logprobs, source.tokens.mask) ? null : 'noLogprobs';
    case 'advantage':
      return source.advantages ? null : 'noAdvantages';
    case 'ratio':
    case 'kl':
      return !source.tokens.policyLogprobs ? 'noPolicyLogprobs' : !source.tokens.refLogprobs ? 'noRefLogprobs' : null;
    case 'entropy':
      return source.tokens.entropy ? null : 'noEntropy';
    case 'version':
      return source.weights.length > 0 ? null : 'noVersions';
  }
}

function hasNumber(values: Float32Array, mask: Uint8Array): boolean {
  for (let i = 0; i < values.length; i++) if (mask[i] === 1 && !Number.isNaN(values[i])) return true;
  return false;
}

/** A channel over one sequence, ready to be drawn. */
export interface ChannelView {
  channel: Channel;
  /** Null for the mask and for versions, which are no numbers. */
  scale: Scale | null;
  /**
   * The number a token is coloured by: log-probability, advantage, log-ratio (so that ×2 and ÷2 are equally far
   * from 1), KL, entropy in nats; for `version` the index of its span. NaN where there is none, or the token was not sampled.
   */
  valueAt(token: number): number;
}

const LOG_LIMIT = 20;

export function channelView(channel: Channel, source: ChannelSource): ChannelView {
  const { tokens, advantages, weights } = source;
  const { mask, logprobs, stepIndex, policyLogprobs: policy, refLogprobs: ref } = tokens;
  const none = Number.NaN;
  switch (channel) {
    case 'mask':
      return { channel, scale: null, valueAt: (token) => (mask[token] === 1 ? 1 : none) };
    case 'logprob': {
      const valueAt = (token: number) => (mask[token] === 1 ? (logprobs[token] as number) : none);
      return { channel, valueAt, scale: sequentialScale(sampled(mask, valueAt), { sign: -1 }) };
    }
    case 'advantage': {
      const valueAt = (token: number) =>
        mask[token] === 1 ? (advantages?.[stepIndex[token] as number] ?? none) : none;
      const values = source.groupAdvantages ?? advantages?.map((value) => value ?? none) ?? [];
      return { channel, valueAt, scale: divergingScale(values) };
    }
    case 'ratio': {
      const valueAt = (token: number) => {
        if (mask[token] !== 1 || !policy || !ref) return none;
        return Math.max(-LOG_LIMIT, Math.min(LOG_LIMIT, (policy[token] as number) - (ref[token] as number)));
      };
      return { channel, valueAt, scale: divergingScale(sampled(mask, valueAt)) };
    }
    case 'kl': {
      const valueAt = (token: number) =>
        mask[token] === 1 && policy && ref ? klOf(policy[token] as number, ref[token] as number) : none;
      return { channel, valueAt, scale: sequentialScale(sampled(mask, valueAt)) };
    }
    case 'entropy': {
      const { entropy } = tokens;
      const valueAt = (token: number) => (mask[token] === 1 && entropy ? (entropy[token] as number) : none);
      return { channel, valueAt, scale: sequentialScale(sampled(mask, valueAt)) };
    }
    case 'version': {
      const index = versionNumbers(weights);
      const valueAt = (token: number) => {
        const span = mask[token] === 1 ? versionAt(weights, token) : -1;
        return span < 0 ? none : (index[span] as number);
      };
      return { channel, scale: null, valueAt };
    }
  }
}

function sampled(mask: Uint8Array, valueAt: (token: number) => number): Float64Array {
  const values = new Float64Array(mask.length);
  let n = 0;
  for (let token = 0; token < mask.length; token++) if (mask[token] === 1) values[n++] = valueAt(token);
  return values.subarray(0, n);
}

/** Spans of one version share a number, in order of first use. */
export function versionNumbers(weights: readonly WeightSpan[]): number[] {
  const seen = new Map<string, number>();
  return weights.map(({ version }) => {
    const known = seen.get(version) ?? seen.size;
    seen.set(version, known);
    return known;
  });
}
