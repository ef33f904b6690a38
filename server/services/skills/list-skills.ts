/** The newest version of every skill, by name. */
import { listSkills as querySkills } from '../../../db/queries/catalog';
import type { SkillSummary } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { readSkillText } from './skill-text';

export async function listSkills({ ctx }: { ctx: ServiceContext }): Promise<SkillSummary[]> {
  requireRole(ctx, 'viewer', 'Listing skills');
  const rows = await querySkills(ctx.database.db);
  return rows.map(({ name, version, yaml, createdAtMs }) => {
    const { description, tools } = readSkillText(yaml);
    return { name, version, description, tools, createdAtMs };
  });
}
