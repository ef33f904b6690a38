/** The tutorial's skill, read from the file that the product serves: what a conversation needs of it. */
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import type { Skill } from '../../server/core/skills/skill';

const schema = z.object({
  skill_name: z.string(),
  description: z.string(),
  available_tools: z.array(z.string()),
  max_rounds: z.number(),
  answer_format: z.object({ required_fields: z.array(z.string()) }),
  reward_weights: z.record(z.string(), z.number()),
  instructions: z.string(),
  sampling: z.object({
    temperature: z.number(),
    top_p: z.number(),
    top_k: z.number(),
    min_p: z.number(),
    max_tokens_per_turn: z.number(),
  }),
  stop: z.array(z.string()),
});

/** Throws with zod's words when the file is no skill. Audit rules and permissions play no part here and stay empty. */
export async function readSkill(file: URL | string): Promise<Skill> {
  const yaml = schema.parse(parse(await readFile(file, 'utf8')));
  const { temperature, top_p: topP, top_k: topK, min_p: minP, max_tokens_per_turn: maxTokensPerTurn } = yaml.sampling;
  return {
    skillName: yaml.skill_name,
    description: yaml.description,
    availableTools: yaml.available_tools,
    maxRounds: yaml.max_rounds,
    answerFormat: { requiredFields: yaml.answer_format.required_fields },
    auditRules: [],
    rewardWeights: yaml.reward_weights,
    instructions: yaml.instructions,
    actionFormat: 'react',
    constrainActions: false,
    sampling: { temperature, topP, topK, minP, maxTokensPerTurn },
    stop: yaml.stop,
    sandbox: { level: 'process', accept: ['process'] },
    permissions: { defaultLevel: 'ask_first', rules: [] },
    maxObservationTokens: 64,
    deadlineMs: 120_000,
    extra: {},
  };
}
