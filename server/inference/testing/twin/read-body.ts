/** Fields of a JSON body, checked as the servers' own schemas check them. */
import { TwinError } from './engine';

export type Fields = Record<string, unknown>;

export function fieldsOf(body: unknown): Fields {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new TwinError(400, 'Input should be a valid dictionary or object to extract fields from');
  return body as Fields;
}

/** Throws for a key that is not among `known`. */
export function onlyFields(fields: Fields, known: readonly string[], refusal: (key: string) => TwinError): void {
  for (const key of Object.keys(fields)) if (!known.includes(key)) throw refusal(key);
}

export function numberOf(fields: Fields, name: string, otherwise: number): number {
  const value = fields[name];
  if (value === undefined || value === null) return otherwise;
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw new TwinError(400, `${name}: Input should be a valid number`);
  return value;
}

export function flagOf(fields: Fields, name: string, otherwise: boolean): boolean {
  const value = fields[name];
  if (value === undefined || value === null) return otherwise;
  if (typeof value !== 'boolean') throw new TwinError(400, `${name}: Input should be a valid boolean`);
  return value;
}

export function textOf(fields: Fields, name: string): string | null {
  const value = fields[name];
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string') throw new TwinError(400, `${name}: Input should be a valid string`);
  return value;
}

/** One text or a list of them. */
export function textsOf(fields: Fields, name: string): string[] {
  const value = fields[name];
  if (value === undefined || value === null) return [];
  const list = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(list) || !list.every((item) => typeof item === 'string'))
    throw new TwinError(400, `${name}: Input should be a valid string or list of strings`);
  return list as string[];
}

export function isIds(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((id) => Number.isInteger(id));
}

export function idsOf(fields: Fields, name: string): number[] {
  const value = fields[name];
  if (value === undefined || value === null) return [];
  if (!isIds(value)) throw new TwinError(400, `${name}: Input should be a valid list of integers`);
  return value;
}

/** A number as Python's JSON writes it: NaN and infinity are refused by the servers themselves. */
export function jsonNumber(value: number): number {
  if (!Number.isFinite(value)) throw new TwinError(500, 'Out of range float values are not JSON compliant');
  return value;
}
