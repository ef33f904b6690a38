import { DrizzleQueryError } from 'drizzle-orm/errors';
import { describe, expect, it } from 'vitest';
import { createLogger } from './logger';
import { redact } from './redact';

describe('what is logged', () => {
  it('keeps counts of tokens and hides tokens', () => {
    expect(
      redact({ promptTokens: 5, generatedTokens: 6, token: 'abc', apiKey: 'k', nested: { 'Set-Cookie': 'c' } }),
    ).toEqual({
      promptTokens: 5,
      generatedTokens: 6,
      token: '[secret]',
      apiKey: '[secret]',
      nested: { 'Set-Cookie': '[secret]' },
    });
  });

  it('hides passwords in addresses, bearer tokens and tokens in queries, wherever they stand', () => {
    const lines: string[] = [];
    const logger = createLogger('info', { write: (line) => void lines.push(line) });
    const error = new Error('cannot reach postgres://studio:hunter2@db:5432/x', {
      cause: new Error('Bearer abcdef123'),
    });
    logger.error({ err: error }, 'GET /sign-in?token=0123456789abcdef failed');
    const line = lines.join('');
    for (const secret of ['hunter2', 'abcdef123', '0123456789abcdef']) expect(line).not.toContain(secret);
    expect(line).toContain('postgres://studio:[secret]@db:5432/x');
  });

  it('shows of a failed statement what the database said, and none of its values', () => {
    const error = new DrizzleQueryError(
      'insert into tasks values ($1)',
      ['a prompt of someone'],
      new Error('disk full'),
    );
    const shown = JSON.stringify(redact({ err: error }));
    expect(shown).toContain('disk full');
    for (const hidden of ['a prompt of someone', 'insert into']) expect(shown).not.toContain(hidden);
  });

  it('says how much of a very long text it left out', () => {
    expect(redact('x'.repeat(10_000))).toMatch(/\[2000 more characters\]$/);
  });
});
