import { describe, expect, it } from 'vitest';
import { remoteSettingsSchema, serverUrlSchema } from './inference-settings';

const parse = (settings: object) => remoteSettingsSchema.safeParse(settings);

describe('settings of a backend on servers', () => {
  it('keeps addresses without the slash at their end', () => {
    const { replicas } = remoteSettingsSchema.parse({
      replicas: [{ url: ' http://gpu-1:8000/ ' }, { url: 'https://gate/a' }],
    });
    expect(replicas).toEqual([{ url: 'http://gpu-1:8000' }, { url: 'https://gate/a' }]);
  });

  it('refuses what is no address of a server, and any place where a secret could stand', () => {
    for (const url of [
      '',
      'gpu-1:8000',
      'ftp://gpu',
      'http://',
      'http://me:word@gpu',
      'http://gpu?key=1',
      'http://gpu#x',
    ])
      expect(parse({ replicas: [{ url }] }).success, url).toBe(false);
    expect(parse({ replicas: [] }).success).toBe(false);
  });

  it('refuses one server twice, however its address is written', () => {
    expect(parse({ replicas: [{ url: 'http://gpu' }, { url: 'http://gpu/' }] }).success).toBe(false);
  });

  it('refuses limits that let nothing through', () => {
    const replicas = [{ url: 'http://gpu' }];
    for (const limit of [{ maxInFlight: 0 }, { tokensInFlight: -1 }, { contextLength: 1.5 }])
      expect(parse({ replicas, ...limit }).success).toBe(false);
    expect(parse({ replicas, maxInFlight: 64, tokensInFlight: 100_000 }).success).toBe(true);
  });

  it('takes the address a chat client is given, without the /v1 that belongs to the routes', () => {
    for (const written of ['http://gpu-1:8000/v1', 'http://gpu-1:8000/v1/', 'http://gpu-1:8000'])
      expect(serverUrlSchema.parse(written)).toBe('http://gpu-1:8000');
    expect(serverUrlSchema.parse('https://proxy/team/v1')).toBe('https://proxy/team');
  });
});
