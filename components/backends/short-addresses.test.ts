import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shortAddresses } from './short-addresses';

const POOL = '.gpu-pool.eu-west.prod.example:8000/v1';

describe('short addresses', () => {
  it('are the whole ones where they fit', () => {
    const urls = ['http://gpu-1:8000', 'http://gpu-2:8000'];
    expect(shortAddresses(urls)).toEqual(urls);
  });

  it('keep the part that differs, whole', () => {
    expect(shortAddresses([`http://worker-001${POOL}`, `http://worker-012${POOL}`])).toEqual([
      'worker-001…',
      'worker-012…',
    ]);
    const host = 'http://one-long-name.of-a-machine.example.org';
    expect(shortAddresses([`${host}:8001`, `${host}:8002`])).toEqual(['…:8001', '…:8002']);
    expect(shortAddresses([`${host}:8000/a/v1`, `${host}:8000/b/v1`])).toEqual(['…/a…', '…/b…']);
  });

  it('are never two the same', () => {
    const long = 'x'.repeat(40);
    expect(shortAddresses([`http://${long}1`, `http://${long}2`])).toEqual([`http://${long}1`, `http://${long}2`]);
    const part = fc.constantFrom('a', 'gpu-1', 'gpu-2', '10', 'x'.repeat(30));
    const url = fc
      .tuple(fc.array(part, { minLength: 1, maxLength: 4 }), fc.nat(9), fc.array(part, { maxLength: 2 }))
      .map(([host, port, path]) => `http://${host.join('.')}:${port}${path.map((folder) => `/${folder}`).join('')}`);
    fc.assert(
      fc.property(fc.uniqueArray(url, { minLength: 1, maxLength: 6 }), (urls) => {
        const short = shortAddresses(urls);
        expect(new Set(short).size).toBe(urls.length);
        expect(short).not.toContain('');
      }),
    );
  });

  it('are cut at the end where there is but one', () => {
    const [short = ''] = shortAddresses([`http://worker-001${POOL}`]);
    expect(short).toBe('worker-001.gpu-pool.eu-west.prod.…');
    expect(shortAddresses([])).toEqual([]);
  });
});
