/** Whether a text was ever a version of a skill: a sample that a person went on from must not come back as the newest. */
import { and, eq } from 'drizzle-orm';
import type { Queryable } from '../connection';
import { skills, skillVersions } from '../schema';

export async function skillTextIsKnown(q: Queryable, input: { name: string; yamlHash: string }): Promise<boolean> {
  const [row] = await q
    .select({ id: skillVersions.id })
    .from(skills)
    .innerJoin(skillVersions, eq(skillVersions.skillId, skills.id))
    .where(and(eq(skills.name, input.name), eq(skillVersions.yamlHash, input.yamlHash)))
    .limit(1);
  return row !== undefined;
}
