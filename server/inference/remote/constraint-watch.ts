/**
 * Holds the first answers of each kind of constraint against it: some servers take the field and ignore it. Several, as a
 * model that was told the form may write one that fits by itself.
 */
import { Unavailable } from '../../core/errors';
import type { Constraint, GenerationResult } from '../backend';
import { checkConstraint } from './constraint-check';
import { textBytes } from './generation-result';

/** So many that fit in a row, and a kind is believed. */
const LOOKED_AT = 8;
const SHOWN_CHARS = 80;

export class ConstraintWatch {
  readonly #server: string;
  /** Answers seen to fit, by kind. */
  readonly #fitted = new Map<Constraint['kind'], number>();

  /** @param server names backend and address at the beginning of a sentence */
  constructor(server: string) {
    this.#server = server;
  }

  /** The server was started again and may have other abilities. */
  forget(): void {
    this.#fitted.clear();
  }

  /** Throws Unavailable when the answer does not fit and is one of the first of its kind. */
  check(constraint: Constraint, result: GenerationResult): void {
    const fitted = this.#fitted.get(constraint.kind) ?? 0;
    if (fitted >= LOOKED_AT) return;
    const bytes = textBytes(result);
    const cut = result.finishReason === 'length' || result.stopString !== null;
    const verdict = checkConstraint(constraint, bytes, cut);
    // Nothing written says nothing of the server.
    if (verdict === 'fits' && bytes.length > 0) this.#fitted.set(constraint.kind, fitted + 1);
    if (verdict !== 'broken') return;
    this.#fitted.delete(constraint.kind);
    const shown = JSON.stringify(new TextDecoder().decode(bytes).slice(0, SHOWN_CHARS));
    throw new Unavailable(
      `${this.#server} ignores constraints of the kind ${constraint.kind}: the text ${shown} is none that it allows. Turn constrained actions off for it, or start the server with its structured outputs enabled.`,
      { retry: false, constraint: constraint.kind },
    );
  }
}
