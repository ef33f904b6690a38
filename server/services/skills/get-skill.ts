/** One version of a skill, the newest by default, and the list of its versions. */
import type { z } from 'zod';
import { getSkillVersion, listSkillVersions } from '../../../db/queries/catalog';
import type { SkillDetail } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { getSkillInput } from './skill-inputs';
import { readSkillText } from './skill-text';

/** Throws NotFound. */
export async function getSkill({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof getSkillInput>;
}): Promise<SkillDetail> {
  requireRole(ctx, 'viewer', 'Looking at a skill');
  const wanted = parseInput(getSkillInput, input);
  const { name, version, yaml, createdAtMs } = await getSkillVersion(ctx.database.db, wanted);
  const { description, tools } = readSkillText(yaml);
  const versions = await listSkillVersions(ctx.database.db, name);
  return { name, version, description, tools, createdAtMs, yaml, versions };
}
