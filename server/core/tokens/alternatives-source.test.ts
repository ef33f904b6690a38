import { describe, expect, it } from 'vitest';
import { alternativesSource } from './alternatives-source';

const scoredBy = (backend: string, atMs: number, alternatives?: number) => ({
  backend,
  weightVersion: 'w1',
  atMs,
  ...(alternatives === undefined ? {} : { alternatives }),
});

describe('the source of alternatives', () => {
  it('is the last scoring that brought some, not the last scoring', () => {
    expect(alternativesSource([scoredBy('policy', 9), scoredBy('ref', 5, 3)])?.backend).toBe('ref');
    expect(alternativesSource([scoredBy('policy', 9, 1), scoredBy('ref', 5, 3)])?.backend).toBe('policy');
  });

  it('is none where nothing was scored, or without alternatives', () => {
    expect(alternativesSource([null, scoredBy('ref', 5), scoredBy('ref', 6, 0)])).toBeNull();
    expect(alternativesSource([])).toBeNull();
  });
});
