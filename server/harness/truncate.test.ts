import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ScriptedBackend } from '../rollout/testing/scripted-backend';
import { truncateByTokens } from './truncate';

const backend = new ScriptedBackend({ script: () => '' });

async function cut(text: string, maxTokens: number) {
  const saved: Uint8Array[] = [];
  const result = await truncateByTokens(backend, text, maxTokens, async (content) => {
    saved.push(content);
    return 'out_1';
  });
  return { ...result, saved };
}

describe('an observation that is too long', () => {
  it('is left alone when it fits to the token', async () => {
    expect(await cut('x'.repeat(100), 100)).toEqual({ text: 'x'.repeat(100), truncated: null, saved: [] });
  });

  it('keeps its head and its tail and says between them how much is gone', async () => {
    const { text, truncated, saved } = await cut(`${'a'.repeat(100)}${'z'.repeat(100)}`, 50);
    expect(text).toBe(`${'a'.repeat(30)}\n[150 of 200 bytes cut here]\n${'z'.repeat(20)}`);
    expect(truncated).toEqual({ keptBytes: 50, totalBytes: 200, outputId: 'out_1' });
    expect(saved).toHaveLength(1);
  });

  it('of 40 MB is cut without encoding all of it, and kept whole', async () => {
    const line = 'a line of output, 32 bytes long\n';
    const whole = line.repeat((40 * 1024 * 1024) / line.length);
    const tokenized: number[] = [];
    const watched = {
      tokenize(text: string, options: { special: boolean }) {
        tokenized.push(text.length);
        return backend.tokenize(text, options);
      },
    };
    let saved = 0;
    const { text, truncated } = await truncateByTokens(watched, whole, 64, async (content) => {
      saved = content.length;
      return 'out_1';
    });
    expect(saved).toBe(40 * 1024 * 1024);
    expect(truncated).toEqual({ keptBytes: 64, totalBytes: saved, outputId: 'out_1' });
    expect(text).toContain(`[${saved - 64} of ${saved} bytes cut here]`);
    expect(Math.max(...tokenized)).toBeLessThan(10_000);
  });

  it('never splits a character, and adds nothing but its notice, whatever the text', async () => {
    const piece = fc.constantFrom('a', 'é', '漢', '🙂', '👨‍👩‍👧', '\u{feff}', '\n', ' ');
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 60 }), fc.integer({ min: 1, max: 40 }), async (pieces, most) => {
        const whole = pieces.join('');
        const bytes = new TextEncoder().encode(whole);
        const { text, truncated, saved } = await cut(whole, most);
        if (bytes.length <= most) {
          expect({ text, truncated }).toEqual({ text: whole, truncated: null });
          return;
        }
        const [, head = '?', tail = '?'] = /^([\s\S]*)\n\[\d+ of \d+ bytes cut here\]\n([\s\S]*)$/.exec(text) ?? [];
        expect(whole.startsWith(head)).toBe(true);
        expect(whole.endsWith(tail)).toBe(true);
        expect(text).not.toContain('\ufffd');
        expect(truncated?.keptBytes).toBe(new TextEncoder().encode(head + tail).length);
        expect(truncated?.keptBytes).toBeLessThanOrEqual(most);
        expect(Buffer.from(saved[0] ?? []).equals(bytes)).toBe(true);
      }),
    );
  });
});
