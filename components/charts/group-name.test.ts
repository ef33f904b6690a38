import { describe, expect, it } from 'vitest';
import { fittedName, sharedBeginning } from './group-name';

const measure = (text: string) => text.length * 10;

describe('a group name without room', () => {
  it('loses what all names share, never what tells them apart', () => {
    const names = ['tutorial-01', 'tutorial-02', 'tutorial-10'];
    const shared = sharedBeginning(names);
    expect(shared).toBe('tutorial-');
    expect(names.map((name) => fittedName(name, shared, 70, measure))).toEqual(['…01', '…02', '…10']);
    expect(fittedName('tutorial-01', shared, 110, measure)).toBe('tutorial-01');
  });
  it('loses its middle where even the rest is too long, and cuts no sign in two', () => {
    expect(fittedName('alpha-beta-gamma-7', '', 70, measure)).toBe('alp…a-7');
    expect(fittedName('😀😀😀😀😀😀', '', 50, measure)).toBe('😀…😀');
    expect(fittedName('x'.repeat(100_000), '', 50, measure)).toBe('xx…xx');
    expect(fittedName('abc', '', 1, measure)).toBe('…c');
  });
  it('takes only whole words for shared, and nothing of a single name', () => {
    expect(sharedBeginning(['task1', 'task12'])).toBe('');
    expect(sharedBeginning(['a/b-1', 'a/b-12'])).toBe('a/b-');
    expect(sharedBeginning(['only-one'])).toBe('');
    expect(sharedBeginning([])).toBe('');
    expect(sharedBeginning(['same-', 'same-'])).toBe('same-');
    expect(fittedName('same-', 'same-', 30, measure)).toBe('s…-');
  });
});
