import { describe, expect, it } from 'vitest';
import { Cancelled } from '../core/errors';
import type { Session } from '../harness/session';
import { Outdated } from './engine';
import { outdatedRule } from './outdated';
import { VersionLine } from './version-line';

const of = (...weightVersions: string[]) => ({ state: { weightVersions } }) as unknown as Session;

describe('the staleness limit of a run', () => {
  const line = new VersionLine(['1', '2', '3', '4']);

  it('lets pass what is within it, counted from the first token', () => {
    const rule = outdatedRule({ limit: 2, older: 'redo' }, line, 0);
    expect(rule(of('2', '4'))).toBeNull();
    expect(rule(of('1', '4'))).toBeInstanceOf(Outdated);
    expect(rule(of())).toBeNull();
  });

  it('has trajectories begun anew three times, then dropped', () => {
    expect(outdatedRule({ limit: 0, older: 'redo' }, line, 2)(of('3'))).toBeInstanceOf(Outdated);
    for (const [older, redone] of [
      ['redo', 3],
      ['drop', 0],
    ] as const) {
      const dropped = outdatedRule({ limit: 0, older }, line, redone)(of('3'));
      expect(dropped).toBeInstanceOf(Cancelled);
      expect(dropped).not.toBeInstanceOf(Outdated);
      expect(dropped?.message).toContain('weights 3, 1 update ago; this run takes at most 0');
    }
  });

  it('learns of new weights from what others sampled, also without a limit', () => {
    const shared = new VersionLine(['a']);
    expect(outdatedRule(null, shared, 0)(of('a', 'b'))).toBeNull();
    expect(outdatedRule({ limit: 0, older: 'drop' }, shared, 0)(of('a'))).toBeInstanceOf(Cancelled);
  });
});
