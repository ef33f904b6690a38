/**
 * How values travel over tRPC, on both ends: superjson, but for one thing. It refuses every value with a key `__proto__`,
 * `constructor` or `prototype` in it, and what models, tools and datasets write may have such keys: a page must still
 * show them. Such a value travels as plain JSON, whose parser makes ordinary keys of them.
 */
import superjson, { type SuperJSONResult } from 'superjson';

const REFUSED = new Set(['__proto__', 'constructor', 'prototype']);

export const transformer = {
  serialize(value: unknown): { json: unknown; meta?: SuperJSONResult['meta'] } {
    return holdsRefusedKey(value) ? { json: value } : superjson.serialize(value);
  },
  deserialize(payload: SuperJSONResult | null): unknown {
    return payload?.meta ? superjson.deserialize(payload) : payload?.json;
  },
};

function holdsRefusedKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(holdsRefusedKey);
  return Object.entries(value).some(([key, inner]) => REFUSED.has(key) || holdsRefusedKey(inner));
}
