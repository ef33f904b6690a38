/** One line of someone else's text for a list: what turns direction or cannot be seen is named, line breaks are ↵. */
import { visibleText } from './token-text';

export function visibleLine(text: string, limit = 160): string {
  const bytes = new TextEncoder().encode(text.trim().slice(0, limit));
  return `${visibleText(bytes, 0, bytes.length)}${text.trim().length > limit ? '…' : ''}`;
}
