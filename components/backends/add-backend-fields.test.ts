import { describe, expect, it } from 'vitest';
import { EMPTY_FIELDS, readAddBackend, suggestedName } from './add-backend-fields';

describe('the form for a backend', () => {
  it('takes several addresses, however they are parted', () => {
    const read = readAddBackend({ ...EMPTY_FIELDS, urls: ' http://a:1, https://b/v1\nhttp://[::1]:3 ' }, null);
    expect(read.urls).toEqual(['http://a:1', 'https://b/v1', 'http://[::1]:3']);
    expect(read.ok).toBe(true);
  });

  it('names the address that is none', () => {
    for (const wrong of ['gpu-1:8000', 'ftp://a', 'file:///etc/passwd', 'http://'])
      expect(readAddBackend({ ...EMPTY_FIELDS, urls: `http://a ${wrong}` }, null)).toMatchObject({
        wrongUrl: wrong,
        ok: false,
      });
  });

  it('leaves out what was not filled in, and refuses what is no number', () => {
    expect(readAddBackend({ ...EMPTY_FIELDS, urls: 'http://a' }, null).check('http://a')).toEqual({
      url: 'http://a',
      kind: 'auto',
    });
    expect(readAddBackend({ ...EMPTY_FIELDS, urls: 'http://a', contextLength: '4k' }, null).wrongNumber).toBe(
      'contextLength',
    );
    expect(readAddBackend({ ...EMPTY_FIELDS, urls: 'http://a', maxInFlight: '0' }, null).wrongNumber).toBe(
      'maxInFlight',
    );
  });

  it('has a control key for trtllm-serve alone, chosen or found at this address', () => {
    const written = { ...EMPTY_FIELDS, urls: 'http://a http://b', name: 'gpu', controlKey: 'c0ntrol' };
    const read = (kind: string, found: Parameters<typeof readAddBackend>[1]) => {
      const { takesControlKey, check, add } = readAddBackend({ ...written, kind }, found);
      return [takesControlKey, 'controlKey' in check('http://a'), 'controlKey' in add(false)];
    };
    const trtllm = { url: 'http://a', kind: 'tensorrt-llm' } as const;
    const shown = [true, true, true];
    const hidden = [false, false, false];
    expect(read('tensorrt-llm', null)).toEqual(shown);
    expect(read('auto', trtllm)).toEqual(shown);
    expect(read('auto', null)).toEqual(hidden);
    expect(read('auto', { ...trtllm, url: 'http://other' })).toEqual(hidden);
    expect(read('auto', { ...trtllm, kind: 'vllm' })).toEqual(hidden);
    expect(read('vllm', trtllm)).toEqual(hidden);
    expect(readAddBackend({ ...written, kind: 'tensorrt-llm' }, null).check('http://a').controlKey).toBe('c0ntrol');
    expect(readAddBackend({ ...written, kind: 'tensorrt-llm', controlKey: '' }, null).add(false)).not.toHaveProperty(
      'controlKey',
    );
  });

  it('adds without a check what was found to be of a kind, or said to be', () => {
    const written = { ...EMPTY_FIELDS, urls: 'http://a http://b', name: 'gpu' };
    const found = { url: 'http://a', kind: 'vllm' } as const;
    const kindOf = (kind: string, unchecked: boolean) =>
      readAddBackend({ ...written, kind }, found).add(unchecked).kind;
    expect(kindOf('auto', true)).toBe('vllm');
    expect(kindOf('auto', false)).toBe('auto');
    expect(kindOf('sglang', true)).toBe('sglang');
    expect(readAddBackend({ ...written, urls: 'http://b' }, found).add(true).kind).toBe('auto');
  });

  it('suggests a name from the address', () => {
    const none = new Set<string>();
    expect(suggestedName('http://gpu-1.lab.example:8000/v1', none)).toBe('gpu-1');
    expect(suggestedName('http://127.0.0.1:8000', none)).toBe('local-8000');
    expect(suggestedName('http://10.0.0.4:8000', none)).toBe('10.0.0.4');
  });

  it('suggests no name that a backend has', () => {
    expect(suggestedName('http://gpu.b.example', new Set(['gpu', 'gpu-2']))).toBe('gpu-3');
  });
});
