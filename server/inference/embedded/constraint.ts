/** Grammars for constrained generation: made once, kept for the next requests, and asked when they are complete. */
import type { Llama, LlamaGrammar, LlamaModel } from 'node-llama-cpp';
import { Invalid } from '../../core/errors';
import type { Constraint } from '../backend';
import { constraintGrammar } from '../constraint-grammar';
import { grammarSchema } from './json-schema';
import type { Addon, GrammarState } from './llama-addon';
import type { Vocabulary } from './vocabulary';

/** What the library puts after a schema's root rule: at least four line ends, for models that do not stop by themselves. */
const PADDING = ' "\\n\\n\\n\\n" [\\n]*';
const KEPT_GRAMMARS = 64;

export class Grammars {
  readonly #llama: Llama;
  readonly #made = new Map<string, Promise<LlamaGrammar>>();

  constructor(llama: Llama) {
    this.#llama = llama;
  }

  /** Throws Invalid for a grammar or schema that cannot be read. */
  async get(constraint: Constraint): Promise<LlamaGrammar> {
    const key = JSON.stringify(constraint);
    const held = this.#made.get(key);
    if (held) return held;
    const made = this.#make(constraint);
    made.catch(() => this.#made.delete(key));
    this.#made.set(key, made);
    const oldest = this.#made.keys().next();
    if (this.#made.size > KEPT_GRAMMARS && !oldest.done) this.#made.delete(oldest.value);
    return made;
  }

  async #make(constraint: Constraint): Promise<LlamaGrammar> {
    if (constraint.kind === 'json_schema') return this.#ofSchema(constraint);
    const grammar = constraint.kind === 'grammar' ? constraint.grammar : constraintGrammar(constraint);
    try {
      return await this.#llama.createGrammar({ grammar });
    } catch (error) {
      throw new Invalid(
        'The grammar of the constraint could not be read: it must be GBNF with a rule called root and without left recursion.',
        { grammar, cause: String(error) },
      );
    }
  }

  async #ofSchema(constraint: Extract<Constraint, { kind: 'json_schema' }>): Promise<LlamaGrammar> {
    // The library's type spells out its dialect; grammarSchema has just made sure of it.
    const schema = grammarSchema(constraint.schema) as unknown as Parameters<Llama['createGrammarForJsonSchema']>[0];
    const padded = await this.#llama.createGrammarForJsonSchema(schema);
    const at = padded.grammar.indexOf(PADDING);
    if (at < 0) return padded;
    return this.#llama.createGrammar({
      grammar: padded.grammar.slice(0, at) + padded.grammar.slice(at + PADDING.length),
    });
  }
}

/** Where one generated text stands in its grammar. */
export class ConstraintState {
  readonly state: GrammarState;
  readonly #addon: Addon;
  readonly #vocabulary: Vocabulary;
  readonly #endToken: number;

  constructor(addon: Addon, grammar: LlamaGrammar, model: LlamaModel, vocabulary: Vocabulary) {
    this.#addon = addon;
    this.#vocabulary = vocabulary;
    this.#endToken = model.tokens.eos ?? model.tokens.eot ?? -1;
    this.state = addon.newGrammarState(grammar);
  }

  /** True when the text may end here and nothing may follow: any next byte is refused. */
  complete(): boolean {
    if (this.#endToken >= 0 && !this.#addon.canBeNext(this.state, this.#endToken)) return false;
    return this.#vocabulary.tokenOfFirstByte.every((token) => token < 0 || !this.#addon.canBeNext(this.state, token));
  }
}
