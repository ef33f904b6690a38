/** What every backend accepts as sampling options; checked before anything is sent anywhere. */
import { Invalid } from '../core/errors';
import type { SamplingOptions } from './backend';

/** Throws Invalid naming the option, what it holds and what is right. */
export function checkSampling(options: SamplingOptions): void {
  const rules: [name: keyof SamplingOptions, ok: boolean, right: string][] = [
    ['maxTokens', Number.isInteger(options.maxTokens) && options.maxTokens >= 1, 'a whole number from 1'],
    ['temperature', options.temperature >= 0 && Number.isFinite(options.temperature), 'a number from 0 (greedy)'],
    ['topP', options.topP > 0 && options.topP <= 1, 'above 0 and at most 1 (off)'],
    ['topK', Number.isInteger(options.topK) && options.topK >= 0, 'a whole number from 0 (off)'],
    ['minP', options.minP >= 0 && options.minP < 1, 'from 0 (off) to below 1'],
    ['seed', Number.isSafeInteger(options.seed), 'a whole number'],
  ];
  for (const [name, ok, right] of rules)
    if (!ok) throw new Invalid(`The sampling option ${name} is ${String(options[name])}; it must be ${right}.`);
}
