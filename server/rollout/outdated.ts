/**
 * How far behind the newest weights a trajectory may be: beyond the run's limit it is begun anew, or dropped. Asked
 * between its steps, so nothing is spent on what nobody will use.
 */
import { Cancelled } from '../core/errors';
import type { Session } from '../harness/session';
import { Outdated } from './engine';
import type { Staleness } from './run-options';
import type { VersionLine } from './version-line';

/** A trajectory that was begun anew this often is dropped instead: the weights move faster than it can end. */
const MOST_REDONE = 3;

/** @param redone how often this trajectory was begun anew before */
export function outdatedRule(
  staleness: Staleness | null,
  versions: VersionLine,
  redone: number,
): (session: Session) => Cancelled | null {
  return ({ state }) => {
    // Also without a limit: what a trajectory meets is how new weights become known where somebody else brings them.
    for (const version of state.weightVersions) versions.note(version);
    const [oldest] = state.weightVersions;
    if (!staleness || oldest === undefined) return null;
    const behind = versions.updatesSince(oldest);
    if (behind <= staleness.limit) return null;
    const sentence = `Its first tokens came from weights ${oldest}, ${behind} ${behind === 1 ? 'update' : 'updates'} ago; this run takes at most ${staleness.limit}.`;
    return staleness.older === 'redo' && redone < MOST_REDONE ? new Outdated(sentence) : new Cancelled(sentence);
  };
}
