/** Reads fields of stored JSON whose shape a page must not depend on: what is not of the type asked for is as if absent. */
import type { Json, JsonObject } from '../../core/vocabulary';

export function asObject(value: unknown): JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as JsonObject) : {};
}

export function asList(value: unknown): Json[] {
  return Array.isArray(value) ? value : [];
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function asTextOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** A finite number, or null. */
export function asNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** A whole number from 0 on, or null: a position, a count. */
export function asCount(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/** The value when it is one of the words, else `otherwise`. */
export function asWord<W extends string, O>(value: unknown, words: readonly W[], otherwise: O): W | O {
  return words.find((word) => word === value) ?? otherwise;
}

/** Name → finite number; other entries are left out. */
export function asNumbers(value: unknown): Record<string, number> {
  const entries = Object.entries(asObject(value)).filter(
    (entry): entry is [string, number] => asNumber(entry[1]) !== null,
  );
  return Object.fromEntries(entries);
}
