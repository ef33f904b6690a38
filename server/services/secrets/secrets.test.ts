import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Invalid, Unavailable } from '../../core/errors';
import { parseEnvironment } from '../../env';
import { openSecretBox, SECRET_FILE } from './open-secret-box';
import { SecretBox } from './secret-box';

const KEY = 'sk-very-secret-0123456789';
const box = (byte: number) => new SecretBox(new Uint8Array(32).fill(byte));

describe('a secret box', () => {
  it('gives a secret back under the same key and for the same thing, and never holds it in clear', () => {
    const sealed = box(1).seal(KEY, 'bck http://a');
    expect(Buffer.from(sealed).toString('latin1')).not.toContain('secret');
    expect(box(1).open(sealed, 'bck http://a')).toBe(KEY);
    expect(box(1).seal(KEY, 'bck http://a')).not.toEqual(sealed);
  });

  it('opens nothing under another key, for another thing, damaged or cut, and says what to do', () => {
    const sealed = box(1).seal(KEY, 'a');
    const flipped = sealed.slice();
    flipped[flipped.length - 1] = (flipped.at(-1) ?? 0) ^ 1;
    const attempts = [
      () => box(2).open(sealed, 'a'),
      () => box(1).open(sealed, 'b'),
      () => box(1).open(flipped, 'a'),
      () => box(1).open(sealed.subarray(0, 20), 'a'),
      () => box(1).open(new Uint8Array(0), 'a'),
    ];
    for (const attempt of attempts) {
      expect(attempt).toThrow(Unavailable);
      expect(attempt).toThrow(/another secret key.*STUDIO_SECRET_KEY/);
    }
  });

  it('shows its key to no log', () => {
    const bytes = Buffer.alloc(32, 'K');
    const shown = `${inspect(new SecretBox(bytes), { depth: 9, showHidden: true })} ${JSON.stringify({ box: new SecretBox(bytes) })}`;
    expect(shown).not.toMatch(/KKK|4b 4b|75, ?75/);
  });
});

describe('the studio’s own key', () => {
  let dataDir: string;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'ts-secret-'));
  });
  afterAll(() => rm(dataDir, { recursive: true, force: true }));

  it('is made once, by whoever is first, for its owner alone', async () => {
    const folder = join(dataDir, 'new');
    const boxes = await Promise.all(Array.from({ length: 8 }, () => openSecretBox({ dataDir: folder, key: null })));
    const sealed = boxes[0]?.seal(KEY, 'a') ?? new Uint8Array(0);
    for (const one of boxes) expect(one.open(sealed, 'a')).toBe(KEY);
    expect((await stat(join(folder, SECRET_FILE))).mode & 0o777).toBe(0o600);
    const text = await readFile(join(folder, SECRET_FILE), 'utf8');
    expect(Buffer.from(text.trim(), 'base64')).toHaveLength(32);
    expect((await openSecretBox({ dataDir: folder, key: null })).open(sealed, 'a')).toBe(KEY);
  });

  it('comes from the environment when it is there, and no file is made', async () => {
    const key = new Uint8Array(32).fill(9);
    const opened = await openSecretBox({ dataDir: join(dataDir, 'none'), key });
    expect(new SecretBox(key).open(opened.seal(KEY, 'a'), 'a')).toBe(KEY);
    await expect(stat(join(dataDir, 'none'))).rejects.toThrow();
  });

  it('is refused in words when its file holds something else or cannot be read', async () => {
    const file = join(dataDir, SECRET_FILE);
    await writeFile(file, 'too short\n');
    await expect(openSecretBox({ dataDir, key: null })).rejects.toThrow(
      new Invalid(
        `The file ${file} does not hold a secret key of 32 bytes in base64. Put the right one back, or remove the file: a new one is made, and stored keys of servers must be entered again.`,
      ),
    );
    await expect(openSecretBox({ dataDir: file, key: null })).rejects.toBeInstanceOf(Unavailable);
  });

  it('may be written in base64 of either alphabet or in hexadecimal, and is never repeated in an error', () => {
    const bytes = new Uint8Array(32).map((_, i) => 251 - i);
    const buffer = Buffer.from(bytes);
    for (const text of [buffer.toString('base64'), buffer.toString('base64url'), buffer.toString('hex')])
      expect(parseEnvironment({ STUDIO_SECRET_KEY: text }).secretKey).toEqual(bytes);
    expect(parseEnvironment({ STUDIO_SECRET_KEY: '' }).secretKey).toBeNull();
    for (const wrong of [
      'hunter2',
      buffer.toString('hex').slice(2),
      `${buffer.toString('base64')}AAAA`,
      'é'.repeat(43),
    ])
      expect(() => parseEnvironment({ STUDIO_SECRET_KEY: wrong })).toThrow(
        /^The environment variable STUDIO_SECRET_KEY cannot be used: it must be 32 bytes, in base64 or as 64 hexadecimal digits\./,
      );
    expect(() => parseEnvironment({ STUDIO_SECRET_KEY: 'hunter2' })).not.toThrow(/hunter2/);
  });
});
