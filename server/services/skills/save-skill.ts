/** Saves a skill as a new immutable version; the text of the newest version saved again makes none. */
import type { z } from 'zod';
import { saveSkillVersion } from '../../../db/queries/catalog';
import { parseSkill } from '../../core/skills/parse';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';
import { nameSchema, parseInput } from '../inputs';
import { KNOWN_NAMES } from './known-names';
import { saveSkillInput } from './skill-inputs';
import { hashSkillText } from './skill-text';

/** Throws Invalid whose message has a line for each problem, with line and column. */
export async function saveSkill({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof saveSkillInput>;
}): Promise<{ name: string; version: number; created: boolean }> {
  requireRole(ctx, 'operator', 'Saving a skill');
  const { yaml } = parseInput(saveSkillInput, input);
  const name = parseInput(nameSchema, parseSkill(yaml, KNOWN_NAMES).skillName);
  const yamlHash = hashSkillText(yaml);
  return ctx.database.db.transaction(async (tx) => {
    const saved = await saveSkillVersion(tx, {
      skillId: ctx.ambient.newId('skl'),
      versionId: ctx.ambient.newId('skl'),
      name,
      yaml,
      yamlHash,
      createdBy: ctx.actor.userId,
      nowMs: ctx.ambient.now(),
    });
    const { version, created } = saved;
    if (created)
      await auditEntry(tx, ctx, {
        actionType: 'save_skill',
        resource: `skill://${name}`,
        operation: 'save',
        status: 'success',
        details: { version, yamlHash },
      });
    return { name, version, created };
  });
}
