/** Small tokenizers of the kinds that real models have, as folders of Hugging Face files. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** As Llama 2 and Mistral have it: ▁ for a blank, one put in front of every text, bytes to fall back on. Plain text merges to `<s>`. */
export async function writeSentencePieceTokenizer(folder: string): Promise<void> {
  const merges = ['▁ t', 'h e', '▁t he', 'l l', 'he ll', 'hell o', '▁ hello', '▁ ▁', 'i n', 'e r', '< s', '<s >'];
  const tokens = ['<unk>', '<s>', '</s>', ...Array.from({ length: 256 }, (_, byte) => `<0x${hex(byte)}>`)];
  for (const character of '▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?<>[]/|_-é你')
    tokens.push(character);
  for (const merge of merges) tokens.push(merge.replace(' ', ''));
  const vocab = vocabularyOf(tokens);
  await write(folder, {
    added_tokens: ['<unk>', '<s>', '</s>'].map((content) => added(vocab, content, true)),
    normalizer: {
      type: 'Sequence',
      normalizers: [
        { type: 'Prepend', prepend: '▁' },
        { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
      ],
    },
    pre_tokenizer: null,
    post_processor: null,
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        { type: 'Strip', content: ' ', start: 1, stop: 0 },
      ],
    },
    model: { type: 'BPE', unk_token: '<unk>', fuse_unk: true, byte_fallback: true, vocab, merges },
  });
}

/** As Qwen has it: byte-level BPE with a split of its own, text composed (NFC), tool markers that are no special tokens. */
export async function writeQwenTokenizer(folder: string): Promise<void> {
  const merges = [
    'Ġ t',
    'h e',
    'Ġt he',
    'i n',
    'Ã ©',
    "' s",
    'Ġ Ġ',
    '/ p',
    '< /',
    '</ p',
    '</p >',
    'ä ½',
    'ï ¿',
    'ï¿ ½',
  ];
  const special = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'];
  const markers = ['<tool_call>', '</tool_call>', '<think>', '</think>'];
  const tokens = [...byteCharacters(), ...merges.map((merge) => merge.replace(' ', '')), ...special, ...markers];
  const vocab = vocabularyOf(tokens);
  const regex =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false };
  await write(
    folder,
    {
      added_tokens: [
        ...special.map((content) => added(vocab, content, true)),
        ...markers.map((content) => added(vocab, content, false)),
      ],
      normalizer: { type: 'NFC' },
      pre_tokenizer: {
        type: 'Sequence',
        pretokenizers: [{ type: 'Split', pattern: { Regex: regex }, behavior: 'Isolated', invert: false }, byteLevel],
      },
      post_processor: byteLevel,
      decoder: byteLevel,
      model: {
        type: 'BPE',
        unk_token: null,
        fuse_unk: false,
        byte_fallback: false,
        vocab: Object.fromEntries(Object.entries(vocab).slice(0, 256 + merges.length)),
        merges,
      },
    },
    {
      eos_token: { content: '<|im_end|>' },
      chat_template: [
        { name: 'default', template: "{% for m in messages %}{{ m.role + ': ' + m.content + eos_token }}{% endfor %}" },
        { name: 'tool_use', template: '{% for t in tools %}[{{ t.type }} {{ t.function.name }}]{% endfor %}' },
      ],
    },
  );
}

async function write(folder: string, tokenizer: object, config: object = {}): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, 'tokenizer.json'),
    JSON.stringify({ version: '1.0', truncation: null, padding: null, ...tokenizer }),
  );
  await writeFile(join(folder, 'tokenizer_config.json'), JSON.stringify(config));
}

function vocabularyOf(tokens: string[]): Record<string, number> {
  return Object.fromEntries([...new Set(tokens)].map((token, id) => [token, id]));
}

function added(vocab: Record<string, number>, content: string, special: boolean) {
  return { id: vocab[content], content, single_word: false, lstrip: false, rstrip: false, normalized: false, special };
}

function hex(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, '0');
}

/** The 256 characters that stand for bytes in a byte-level vocabulary, in the order of the bytes. */
function byteCharacters(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCodePoint(printable ? byte : next++);
  });
}
