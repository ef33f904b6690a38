import { describe, expect, it } from 'vitest';
import en from './en.json';
import zh from './zh.json';

type Tree = { [key: string]: string | Tree };

function flatten(tree: Tree, prefix = ''): Map<string, string> {
  const flat = new Map<string, string>();
  for (const [key, value] of Object.entries(tree))
    if (typeof value === 'string') flat.set(prefix + key, value);
    else for (const [inner, text] of flatten(value, `${prefix}${key}.`)) flat.set(inner, text);
  return flat;
}

/**
 * The names of an ICU message's arguments: `{name}`, `{n, plural, one {…} other {…}}`, nested ones included. Their kinds
 * may differ: Chinese has no plural forms.
 */
function placeholders(message: string): Set<string> {
  const found = new Set<string>();
  let position = 0;
  const readMessage = (nested: boolean): void => {
    while (position < message.length) {
      const character = message[position];
      if (character === '}' && nested) return;
      position += 1;
      if (character === '{') readArgument();
    }
    if (nested) throw new Error(`A brace is never closed: ${message}`);
  };
  const readArgument = (): void => {
    const [, name] = /^\s*([\w.]+)/.exec(message.slice(position)) ?? [];
    if (!name) throw new Error(`A brace holds no name: ${message}`);
    found.add(name);
    while (position < message.length && message[position] !== '}') {
      position += 1;
      if (message[position - 1] === '{') {
        readMessage(true);
        position += 1;
      }
    }
    if (position >= message.length) throw new Error(`A brace is never closed: ${message}`);
    position += 1;
  };
  readMessage(false);
  return found;
}

describe('the messages of the interface', () => {
  const english = flatten(en);
  const chinese = flatten(zh);

  it('exist in both languages under the same keys', () => {
    expect([...chinese.keys()].sort()).toEqual([...english.keys()].sort());
  });

  it('have the same placeholders in both languages', () => {
    for (const [key, text] of english)
      expect({ key, placeholders: [...placeholders(chinese.get(key) ?? '')].sort() }).toEqual({
        key,
        placeholders: [...placeholders(text)].sort(),
      });
  });

  it('are never empty, and the Chinese ones are not left in English', () => {
    for (const [key, text] of chinese) {
      expect({ key, empty: text.trim() === '' || english.get(key)?.trim() === '' }).toEqual({ key, empty: false });
      const words =
        (english.get(key) ?? '').replace(/\{[^}]*\}/g, '').match(/(?<=^|\s)[A-Za-z]{2,}(?=[\s.,]|$)/g) ?? [];
      // A sentence of three English words or more that reads the same in Chinese was forgotten.
      expect({ key, forgotten: words.length > 2 && text === english.get(key) }).toEqual({ key, forgotten: false });
    }
  });

  it('are read with their nested placeholders', () => {
    expect([...placeholders('{n, plural, one {# of {total}} other {#}} by {who}')]).toEqual(['n', 'total', 'who']);
    expect(() => placeholders('{n, plural, other {#}')).toThrow();
  });
});
