/** What callers may send to the verbs of skills. */
import { z } from 'zod';
import { isStorable, nameSchema, UNSTORABLE } from '../inputs';

/** Characters of YAML a skill may have. */
export const MAX_SKILL_CHARACTERS = 200_000;

export const getSkillInput = z.object({ name: nameSchema, version: z.number().int().min(1).optional() });
export const saveSkillInput = z.object({
  yaml: z
    .string()
    .max(MAX_SKILL_CHARACTERS, `must not be longer than ${MAX_SKILL_CHARACTERS} characters`)
    .refine(isStorable, UNSTORABLE),
});
