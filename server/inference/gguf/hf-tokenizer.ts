/** The tokenizer of a GGUF file of ours as Hugging Face's tokenizer.json and tokenizer_config.json. */
import { Invalid } from '../../core/errors';
import type { GgufFile } from './write';

/** llama.cpp's token types. Control tokens are special; user-defined ones are matched in plain text, but are text. */
const CONTROL = 3;
const USER_DEFINED = 4;

export interface TokenizerFiles {
  tokenizer: Record<string, unknown>;
  config: Record<string, unknown>;
}

/** Throws Invalid for a tokenizer other than byte-level BPE that splits as GPT-2 does: our models have no other. */
export function tokenizerFiles({ metadata }: GgufFile): TokenizerFiles {
  const kind = metadata.get('tokenizer.ggml.model')?.value;
  const split = metadata.get('tokenizer.ggml.pre')?.value;
  if (kind !== 'gpt2' || split !== 'gpt-2')
    throw new Invalid(
      `The tokenizer of this GGUF file is ${String(kind)} with the pre-tokenizer ${String(split)}; only byte-level BPE (gpt2, gpt-2) becomes a Hugging Face tokenizer here.`,
    );
  const tokens = (metadata.get('tokenizer.ggml.tokens')?.value ?? []) as readonly string[];
  const types = (metadata.get('tokenizer.ggml.token_type')?.value ?? []) as readonly number[];
  const merges = (metadata.get('tokenizer.ggml.merges')?.value ?? []) as readonly string[];
  const added = tokens.flatMap((content, id) =>
    types[id] === CONTROL || types[id] === USER_DEFINED
      ? [
          {
            id,
            content,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special: types[id] === CONTROL,
          },
        ]
      : [],
  );
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
  return {
    tokenizer: {
      version: '1.0',
      truncation: null,
      padding: null,
      added_tokens: added,
      normalizer: null,
      pre_tokenizer: byteLevel,
      post_processor: null,
      decoder: byteLevel,
      model: {
        type: 'BPE',
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: false,
        byte_fallback: false,
        ignore_merges: false,
        vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
        merges,
      },
    },
    config: {
      tokenizer_class: 'PreTrainedTokenizerFast',
      add_bos_token: false,
      add_eos_token: false,
      add_prefix_space: false,
      clean_up_tokenization_spaces: false,
      bos_token: null,
      eos_token: tokens[idOf(metadata, 'eos')] ?? null,
      pad_token: tokens[idOf(metadata, 'padding')] ?? null,
      unk_token: null,
      model_max_length: metadata.get('llama.context_length')?.value,
      added_tokens_decoder: Object.fromEntries(added.map(({ id, ...token }) => [id, token])),
      chat_template: metadata.get('tokenizer.chat_template')?.value,
    },
  };
}

/** −1 where the file names none. */
export function idOf(metadata: GgufFile['metadata'], name: 'eos' | 'bos' | 'padding'): number {
  return Number(metadata.get(`tokenizer.ggml.${name}_token_id`)?.value ?? -1);
}
