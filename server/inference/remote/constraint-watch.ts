/** Holds the first answer of each kind of constraint against it: some servers take the field and ignore it. */
import { Unavailable } from '../../core/errors';
import type { Constraint, GenerationResult } from '../backend';
import { checkConstraint } from './constraint-check';
import { textBytes } from './generation-result';

const SHOWN_CHARS = 80;

export class ConstraintWatch {
  readonly #server: string;
  /** Kinds of which an answer was seen to fit. */
  readonly #kept = new Set<Constraint['kind']>();

  /** @param server names backend and address at the beginning of a sentence */
  constructor(server: string) {
    this.#server = server;
  }

  /** The server was started again and may have other abilities. */
  forget(): void {
    this.#kept.clear();
  }

  /** Throws Unavailable when the answer does not fit and none of its kind did before. */
  check(constraint: Constraint, result: GenerationResult): void {
    if (this.#kept.has(constraint.kind)) return;
    const bytes = textBytes(result);
    const cut = result.finishReason === 'length' || result.stopString !== null;
    const verdict = checkConstraint(constraint, bytes, cut);
    // Nothing written says nothing of the server.
    if (verdict === 'fits' && bytes.length > 0) this.#kept.add(constraint.kind);
    if (verdict !== 'broken') return;
    const shown = JSON.stringify(new TextDecoder().decode(bytes).slice(0, SHOWN_CHARS));
    throw new Unavailable(
      `${this.#server} ignores constraints of the kind ${constraint.kind}: the text ${shown} is none that it allows. Turn constrained actions off for it, or start the server with its structured outputs enabled.`,
      { retry: false, constraint: constraint.kind },
    );
  }
}
