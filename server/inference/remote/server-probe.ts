/** What protocols ask of any server before they know more: its models, whether a route is there, one word of an answer. */
import { Invalid, isStudioError, NotFound } from '../../core/errors';
import type { CallOptions, HttpClient } from './http-client';
import { isObject } from './json-body';
import { where } from './server-name';
import { plain, quoted } from './server-words';

const HEALTH_TIMEOUT_MS = 5000;

/** Whether the server answers what it need not work for: `GET /health`, whose body may be anything, or what `ask` asks. */
export async function health(
  http: HttpClient,
  ask = (options: CallOptions): Promise<unknown> => http.text('GET', '/health', undefined, options),
): Promise<{ ok: boolean; message: string }> {
  try {
    await ask({ timeoutMs: HEALTH_TIMEOUT_MS });
    return { ok: true, message: `${where(http)} answers.` };
  } catch (error) {
    if (isStudioError(error)) return { ok: false, message: error.message };
    throw error;
  }
}

/** A route that wants POST answers GET with 405; asking so changes nothing on the server. */
export async function isMounted(http: HttpClient, path: string): Promise<boolean> {
  const { status } = await http.text('GET', path, undefined, { accept: [400, 401, 403, 404, 405, 422] });
  return status === 405;
}

/** An object that the route answers with; null where there is no such route. */
export async function objectAt(http: HttpClient, path: string): Promise<Record<string, unknown> | null> {
  const { status, body } = await http.getJson(path, { accept: [404, 405, 501] });
  return status < 300 && isObject(body) ? body : null;
}

/** From the first of several names of one route that exists; empty when none does. */
export async function firstOf(http: HttpClient, paths: readonly string[]): Promise<Record<string, unknown>> {
  for (const path of paths) {
    const found = await objectAt(http, path);
    if (found) return found;
  }
  return {};
}

/** Cards of `GET /v1/models`. Throws Invalid when their owner is another than `owner`, the server's own word for itself. */
export async function modelCards(http: HttpClient, owner: string, product: string): Promise<Record<string, unknown>[]> {
  const { body } = await http.getJson('/v1/models');
  const data: unknown[] = isObject(body) && Array.isArray(body.data) ? body.data : [];
  const cards = data.filter(isObject);
  const says = cards[0]?.owned_by;
  if (says === owner) return cards;
  const named = typeof says === 'string' ? `${quoted(says)} as the owner` : 'no owner';
  throw new Invalid(`${where(http)} is no ${product}: GET /v1/models names ${named} of its models.`);
}

export function notServed(http: HttpClient, wanted: string, served: readonly string[]): NotFound {
  const names = served.slice(0, 10).map((name) => plain(name.slice(0, 80)));
  const list = http.redaction.clean(names.join(', '));
  return new NotFound(`${where(http)} does not serve the model ${wanted}; it serves ${list}.`);
}

/** An answer that is not what was asked for; nothing of it is used. */
export function broken(http: HttpClient, asked: string, what: string, details: Record<string, unknown> = {}): Invalid {
  return new Invalid(`${where(http)} answered POST ${asked}, but cannot be used: ${http.redaction.clean(what)}.`, {
    backend: http.backend,
    url: http.url,
    retry: false,
    ...details,
  });
}

/** Of a field that must hold token ids; null when it does not. */
export function readIds(value: unknown): Int32Array | null {
  if (!Array.isArray(value) || !value.every((id) => Number.isInteger(id) && id >= 0 && id < 2 ** 31)) return null;
  return Int32Array.from(value);
}

export const numberOrNaN = (value: unknown): number => (typeof value === 'number' ? value : Number.NaN);
export const countOrNull = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
export const textOrNull = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
