/** The parts of a turn whose thinking stands between marks, as ChatML, Llama and Mistral models write it. */
import { type ObjectEnd, objectEnds, skipBlanks } from './byte-text';
import type { CallPart, Part } from './parts';

const OPEN = ['<think>', '[THINK]'];
const CLOSE = ['</think>', '[/THINK]'];

/** A run of calls that stand together. */
export interface CallRun {
  start: number;
  calls: CallPart[];
}

export interface CallFinder {
  /** The next calls at or after `from`. */
  next(text: string, from: number, objectEnd: ObjectEnd): CallRun | null;
  /** Calls that begin right at `from`, where the turn begins to speak. */
  first?(text: string, from: number, objectEnd: ObjectEnd): CallRun | null;
}

/**
 * @param text a character a byte
 * @param startsInThought the prompt opened a thinking block
 */
export function splitThinking(text: string, startsInThought: boolean, finder: CallFinder): Part[] {
  let parts: Part[] = [];
  let at = 0;
  const objectEnd = objectEnds(text);
  const nextOpen = finderOf(text, OPEN);
  const nextClose = finderOf(text, CLOSE);
  if (startsInThought && text !== '') {
    const close = nextClose(0);
    parts.push({ kind: 'thought', start: 0, end: close.end, bodyStart: 0, bodyEnd: close.start });
    at = close.end;
  }
  let fresh = true;
  let run: CallRun | null | undefined;
  while (at < text.length) {
    const first = fresh ? (finder.first?.(text, skipBlanks(text, at), objectEnd) ?? null) : null;
    if (run === undefined || (run !== null && run.start < at)) run = finder.next(text, at, objectEnd);
    const calls = first ?? run;
    const open = nextOpen(at);
    const close = nextClose(at);
    const callAt = calls?.start ?? text.length;
    if (close.start < open.start && close.start < callAt) {
      // Closed and never opened: all of it up to here was thinking, calls in it included.
      parts = [{ kind: 'thought', start: 0, end: close.end, bodyStart: 0, bodyEnd: close.start }];
      at = close.end;
      fresh = true;
    } else if (open.start < callAt) {
      if (open.start > at) parts.push(words(at, open.start));
      const end = nextClose(open.end);
      parts.push({ kind: 'thought', start: open.start, end: end.end, bodyStart: open.end, bodyEnd: end.start });
      at = end.end;
      fresh = true;
    } else {
      if (callAt > at) parts.push(words(at, callAt));
      parts.push(...(calls?.calls ?? []));
      at = calls?.calls.at(-1)?.end ?? text.length;
      fresh = false;
    }
  }
  return parts;
}

const words = (start: number, end: number): Part => ({ kind: 'text', start, end, bodyStart: start, bodyEnd: end });

interface Mark {
  start: number;
  end: number;
}

/** The first of the marks at or behind a place that only grows; an empty place at the end of the text when there is none. */
function finderOf(text: string, marks: readonly string[]): (from: number) => Mark {
  const found = marks.map((): Mark => ({ start: -1, end: -1 }));
  return (from) => {
    marks.forEach((mark, k) => {
      if ((found[k] as Mark).start >= from) return;
      const start = text.indexOf(mark, from);
      found[k] = start === -1 ? { start: text.length, end: text.length } : { start, end: start + mark.length };
    });
    return found.reduce((first, mark) => (mark.start < first.start ? mark : first));
  };
}
