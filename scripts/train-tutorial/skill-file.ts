/** The tutorial's skill, read from the file that the product serves. */
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';

const schema = z.object({
  skill_name: z.string(),
  available_tools: z.array(z.string()),
  max_rounds: z.number(),
  answer_format: z.object({ required_fields: z.array(z.string()) }),
  instructions: z.string(),
  sampling: z.object({ temperature: z.number(), top_p: z.number(), top_k: z.number(), min_p: z.number(), max_tokens_per_turn: z.number() }),
  stop: z.array(z.string()),
});
