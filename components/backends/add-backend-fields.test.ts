import { describe, expect, it } from 'vitest';
import { EMPTY_FIELDS, readAddBackend, suggestedName } from './add-backend-fields';

describe('the form for a backend', () => {
  it('takes several addresses, however they are parted', () => {
    const read = readAddBackend({ ...EMPTY_FIELDS, urls: ' http://a:1, https://b/v1\nhttp://[::1]:3 ' });
    expect(read.urls).toEqual(['http://a:1', 'https://b/v1', 'http://[::1]:3']);
    expect(read.ok).toBe(true);
  });

  it('names the address that is none', () => {
    for (const wrong of ['gpu-1:8000', 'ftp://a', 'file:///etc/passwd', 'http://'])
      expect(readAddBackend({ ...EMPTY_FIELDS, urls: `http://a ${wrong}` })).toMatchObject({
        wrongUrl: wrong,
        ok: false,
      });
  });

  it('leaves out what was not filled in, and refuses what is no number', () => {
    expect(readAddBackend({ ...EMPTY_FIELDS, urls: 'http://a' }).check('http://a')).toEqual({
      url: 'http://a',
      kind: 'auto',
    });
    expect(readAddBackend({ ...EMPTY_FIELDS, urls: 'http://a', contextLength: '4k' }).wrongNumber).toBe(
      'contextLength',
    );
    expect(readAddBackend({ ...EMPTY_FIELDS, urls: 'http://a', maxInFlight: '0' }).wrongNumber).toBe('maxInFlight');
  });

  it('suggests a name from the address', () => {
    expect(suggestedName('http://gpu-1.lab.example:8000/v1')).toBe('gpu-1');
    expect(suggestedName('http://127.0.0.1:8000')).toBe('local-8000');
    expect(suggestedName('http://10.0.0.4:8000')).toBe('10.0.0.4');
  });
});
