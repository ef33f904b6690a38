import { describe, expect, it } from 'vitest';
import { createAddresses } from './addresses';

describe('the addresses a studio answers to', () => {
  const local = createAddresses({ host: '127.0.0.1', port: 3000, publicUrl: null });

  it('answers to the names of this machine with its own port', () => {
    for (const host of ['127.0.0.1:3000', 'localhost:3000', 'LOCALHOST:3000', '[::1]:3000'])
      expect(local.allowsHost(host)).toBe(true);
  });

  it('answers to no other name, port or number', () => {
    for (const host of [
      undefined,
      '',
      'evil.example:3000',
      '127.0.0.1',
      '127.0.0.1:3001',
      'localhost:3000.evil.example',
    ])
      expect(local.allowsHost(host)).toBe(false);
    expect(local.allowsHost('192.168.0.7:3000')).toBe(false);
  });

  it('takes changes from its own pages only, the port and the scheme included', () => {
    expect(local.allowsOrigin('http://127.0.0.1:3000')).toBe(true);
    for (const origin of [
      'null',
      '',
      'https://127.0.0.1:3000',
      'http://127.0.0.1:3001',
      'http://evil.example',
      'file://',
    ])
      expect(local.allowsOrigin(origin)).toBe(false);
    expect(local.allowsOrigin('http://127.0.0.1:3000@evil.example')).toBe(false);
    expect(local.allowsOrigin('http://127.0.0.1:3000/x')).toBe(false);
  });

  it('on every interface answers to numbers, which cannot be rebound, and to no foreign name', () => {
    const open = createAddresses({ host: '0.0.0.0', port: 3000, publicUrl: null });
    expect(open.publicUrl).toBe('http://127.0.0.1:3000');
    expect(open.allowsHost('192.168.0.7:3000')).toBe(true);
    expect(open.allowsHost('[fe80::1]:3000')).toBe(true);
    expect(open.allowsHost('999.1.1.1:3000')).toBe(false);
    expect(open.allowsHost('evil.example:3000')).toBe(false);
  });

  it('behind a proxy answers to the address people use', () => {
    const proxied = createAddresses({ host: '127.0.0.1', port: 3000, publicUrl: 'https://studio.example/' });
    expect(proxied.publicUrl).toBe('https://studio.example');
    expect(proxied.secure).toBe(true);
    expect(proxied.allowsHost('studio.example')).toBe(true);
    expect(proxied.allowsOrigin('https://studio.example')).toBe(true);
    expect(proxied.allowsOrigin('http://studio.example')).toBe(false);
    expect(proxied.localUrl).toBe('http://127.0.0.1:3000');
  });

  it('leaves the default port out as browsers do', () => {
    const web = createAddresses({ host: '127.0.0.1', port: 80, publicUrl: null });
    expect(web.allowsHost('127.0.0.1')).toBe(true);
    expect(web.allowsOrigin('http://127.0.0.1')).toBe(true);
  });
});
