import { describe, expect, it } from 'vitest';
import { safeNextPath } from './server-errors';

describe('where a sign-in leads', () => {
  it('is a path of this site, with its search', () => {
    expect(safeNextPath('/runs/r1?sort=reward')).toBe('/runs/r1?sort=reward');
  });
  it('is the home page when the wish leads elsewhere', () => {
    for (const wish of [
      null,
      '',
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      'javascript:alert(1)',
      '/\t/evil.example',
    ])
      expect(safeNextPath(wish)).toBe('/');
  });
});
