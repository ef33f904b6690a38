/** Reads the JSON that a model wrote, and says in a sentence for the model why it could not be read. */
import { MAX_JSON_DEPTH, nestsDeeperThan } from '../json-depth';
import type { Json, JsonObject } from '../vocabulary';

/** How the turn ended inside this JSON: at its token limit, at a stop string; null when it did not. */
export type Cut = 'length' | 'stop' | null;

/** The object, or the sentence that says why there is none. */
export function readObject(text: string, what: string, cut: Cut): JsonObject | string {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    if (cut === 'length') return `${what} was truncated: the token limit cut its JSON off before it was complete.`;
    if (cut === 'stop') return `${what} was cut off by the stop string inside its JSON.`;
    return `${what} is not valid JSON (${error instanceof Error ? error.message : 'unreadable'}).`;
  }
  if (nestsDeeperThan(MAX_JSON_DEPTH, value)) return `${what} nests lists or objects more than ${MAX_JSON_DEPTH} deep.`;
  return isObject(value) ? value : `${what} must be a JSON object in braces.`;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
