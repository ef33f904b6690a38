import { expect, it } from 'vitest';
import { overallLogprobKind } from './state';

it('log-probabilities of more than one kind in a sequence are of a kind nobody may count on', () => {
  expect(overallLogprobKind(['raw', 'raw'])).toBe('raw');
  expect(overallLogprobKind(['sampled'])).toBe('sampled');
  expect(overallLogprobKind(['raw', 'sampled'])).toBe('unknown');
  expect(overallLogprobKind(['constrained', 'raw'])).toBe('unknown');
  expect(overallLogprobKind([])).toBe('unknown');
});
