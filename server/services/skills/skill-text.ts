/** The fingerprint by which two texts of a skill are the same version, and what lists show of a text. */
import { createHash } from 'node:crypto';
import { parse } from 'yaml';
import { asList, asNumbers, asObject, asText } from '../trajectories/read-json';

/** SHA-256 in hex. */
export function hashSkillText(yaml: string): string {
  return createHash('sha256').update(yaml, 'utf8').digest('hex');
}

/** Never throws: a version saved by another release must not hide the list. */
export function readSkillText(yaml: string): {
  description: string;
  tools: string[];
  rewardWeights: Record<string, number>;
} {
  let value: unknown;
  try {
    value = parse(yaml, { logLevel: 'error' });
  } catch {
    value = null;
  }
  const fields = asObject(value);
  const tools = asList(fields.available_tools).filter((tool): tool is string => typeof tool === 'string');
  return { description: asText(fields.description), tools, rewardWeights: asNumbers(fields.reward_weights) };
}
