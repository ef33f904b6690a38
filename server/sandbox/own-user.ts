/**
 * A user of its own for each sandbox when the server is root: root is exempt from the limit on processes, and two
 * sandboxes of one user could count, signal and read one another wherever a namespace fails to part them.
 */
import { readFileSync } from 'node:fs';

/** Users and groups that exist here, from /proc/self/uid_map: [first, count]. */
export function parseIdMap(text: string): [first: number, count: number][] {
  return text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .map(([first, , count]) => [first ?? 0, count ?? 0]);
}

/** Far above every range that distributions hand out. */
const WIDE = { first: 1_200_000_000, blocks: 100_000, size: 1_000 };
/** Where only 65,536 users are mapped (containers): the range systemd keeps for users that are made up for a while. */
const NARROW = { first: 61_184, blocks: 16, size: 256 };

/** Shared by all pools of the process. */
const taken = new Set<number>();
let next = 0;

export class OwnUsers {
  readonly #first: number;
  readonly #size: number;

  private constructor(first: number, size: number) {
    this.#first = first;
    this.#size = size;
  }

  /** Two servers on a host rarely share a block. */
  static find(
    serverUid: number,
    pid: number,
    idMap = readFileSync('/proc/self/uid_map', 'utf8'),
  ): OwnUsers | 'not root' | 'no users' {
    if (serverUid !== 0) return 'not root';
    const map = parseIdMap(idMap);
    for (const range of [WIDE, NARROW]) {
      const first = range.first + (pid % range.blocks) * range.size;
      const last = first + range.size - 1;
      if (map.some(([start, count]) => first >= start && last < start + count)) return new OwnUsers(first, range.size);
    }
    return 'no users';
  }

  take(): number {
    for (let tried = 0; tried < this.#size; tried++) {
      const uid = this.#first + (next++ % this.#size);
      if (!taken.has(uid)) {
        taken.add(uid);
        return uid;
      }
    }
    throw new Error('Every user for sandboxes is taken.');
  }

  giveBack(uid: number): void {
    taken.delete(uid);
  }
}
