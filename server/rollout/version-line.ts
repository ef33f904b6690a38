/**
 * The order in which a backend's weights came, by their labels: how many versions lie between two of them. Labels mean
 * nothing by themselves; what counts is when each was first seen.
 */
import { MIXED } from '../core/tokens/chunk';

export class VersionLine {
  readonly #order = new Map<string, number>();

  /** @param known labels in the order they came, oldest first */
  constructor(known: readonly string[] = []) {
    for (const version of known) this.note(version);
  }

  /** Takes a label in when it is new. A generation that mixed two versions has a label of its own and none here. */
  note(version: string): void {
    if (!this.#order.has(version) && !version.includes(MIXED)) this.#order.set(version, this.#order.size);
  }

  /** Updates since `version`: 0 for the newest. A label never seen is older than all that were. */
  updatesSince(version: string): number {
    const [oldest = version] = version.split(MIXED);
    const position = this.#order.get(oldest);
    return position === undefined ? this.#order.size : this.#order.size - 1 - position;
  }
}
