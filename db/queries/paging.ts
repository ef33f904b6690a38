/** Keyset cursors: opaque to whoever passes them back, stable while rows are added. */
import { Invalid } from '../../server/core/errors';

export const DEFAULT_LIMIT = 50;
export const MOST_ROWS = 200;

export function pageSize(limit: number | undefined, fallback = DEFAULT_LIMIT): number {
  return Math.min(Math.max(1, Math.trunc(limit ?? fallback)), MOST_ROWS);
}

/** Pages by time, newest first: the moment and the id of the last row. */
export function encodeTimeCursor(row: { atMs: number; id: string }): string {
  return `${row.atMs}.${row.id}`;
}

export function decodeTimeCursor(cursor: string | null | undefined): { atMs: number; id: string } | null {
  if (!cursor) return null;
  const found = /^(\d{1,15})\.(\w{1,64})$/.exec(cursor);
  if (!found) throw new Invalid('The page cursor is not one that this list gave. Start from the first page.');
  return { atMs: Number(found[1]), id: String(found[2]) };
}

export function decodePositionCursor(cursor: string | null | undefined): number {
  if (!cursor) return -1;
  if (!/^\d{1,9}$/.test(cursor))
    throw new Invalid('The page cursor is not one that this list gave. Start from the first page.');
  return Number(cursor);
}
