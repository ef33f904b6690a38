import { describe, expect, it } from 'vitest';
import { VersionLine } from './version-line';

describe('the order of weight versions', () => {
  it('counts the updates since a version, whatever the labels look like', () => {
    const line = new VersionLine(['default', 'step-9']);
    line.note('step-10');
    line.note('step-9');
    expect(['step-10', 'step-9', 'default'].map((version) => line.updatesSince(version))).toEqual([0, 1, 2]);
  });

  it('takes a mixed generation for as old as its first version, and a label never seen for older than all', () => {
    const line = new VersionLine(['a', 'b']);
    line.note('a→b');
    expect(line.updatesSince('a→b')).toBe(1);
    expect(line.updatesSince('unknown')).toBe(2);
  });
});
