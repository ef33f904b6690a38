import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { unbiased } from './scoring';

describe('a log-probability read from a biased one', () => {
  it('is the one before the bias', () => {
    fc.assert(
      fc.property(
        fc.double({ min: -60, max: -1e-3, noNaN: true }),
        fc.integer({ min: 0, max: 60 }),
        (logprob, bias) => {
          const p = Math.exp(logprob);
          const raised = p * Math.exp(bias);
          const confidence = raised / (raised + 1 - p);
          // A bias that makes the token certain loses the rest; the search never uses one.
          fc.pre(confidence < 1 - 1e-6);
          expect(unbiased(confidence, bias)).toBeCloseTo(logprob, 6);
        },
      ),
    );
  });
});
