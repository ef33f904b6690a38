import { describe, expect, it } from 'vitest';
import { chooseLocale } from './locale';

describe('the language of a page', () => {
  it('is the one the person chose', () => {
    expect(chooseLocale('zh', 'en')).toBe('zh');
    expect(chooseLocale('en', 'zh-CN')).toBe('en');
  });
  it('follows the browser where nothing was chosen, by weight and then by order', () => {
    expect(chooseLocale(undefined, 'zh-CN,zh;q=0.9,en;q=0.8')).toBe('zh');
    expect(chooseLocale(undefined, 'en;q=0.5, zh-Hant;q=0.9')).toBe('zh');
    expect(chooseLocale(undefined, 'fr-FR, de, en;q=0.1')).toBe('en');
    expect(chooseLocale(undefined, 'zh;q=0, en')).toBe('en');
  });
  it('is English where nothing fits, and never fails on a broken header', () => {
    for (const header of [null, '', '*', ';;;', 'zh;q=abc', ',,,', 'x'.repeat(9000)])
      expect(chooseLocale('<script>', header)).toBe('en');
  });
});
