/** The check of a server as lines for a terminal. What the server said is foreign text and is made harmless here. */
import type { BackendCheck, CheckItem } from '../core/inference';

const SIGNS: Record<CheckItem['status'], string> = { pass: '✓', warn: '!', fail: '✗', absent: '–' };

/** One line an item; what was sent and came back below those that did not pass. */
export function checkLines({ url, kind, serverVersion, ok, items, capabilities }: BackendCheck): string[] {
  const what = kind === null ? 'its kind was not found out' : `${kind} ${serverVersion ?? ''}`.trim();
  const lines = [`${url}: ${what}${capabilities ? `, model ${capabilities.modelName}` : ''}`];
  for (const { id, status, says, sent, received } of items) {
    lines.push(`${SIGNS[status]} ${id.replaceAll('_', ' ')}: ${says}`);
    if (status !== 'fail' && status !== 'warn') continue;
    if (sent) lines.push(`    sent ${sent}`);
    if (received) lines.push(`    received ${received}`);
  }
  lines.push(ok ? 'It can be used.' : 'It cannot be used as it is.');
  return lines.map(harmless);
}

/** Control characters and line breaks become blanks, so that no server moves the cursor of whoever asks. */
export function harmless(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu, ' ').trimEnd();
}
