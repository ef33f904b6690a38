/**
 * Chat templates of public models, written down compactly: true in what they do with functions, calls, results, thinking
 * and the tokens that close a turn. The words around the list of functions are shortened.
 */

export interface ModelChat {
  template: string;
  /** Every control token the template or the model writes. */
  controls: readonly string[];
  /** Those that end a turn; the usual one first. */
  ends: readonly string[];
  bos: string;
}
