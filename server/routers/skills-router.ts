/** Skills: input schema → verb → output. */
import type { SkillDetail, SkillSummary } from '../core/views';
import { getSkill } from '../services/skills/get-skill';
import { listSkills } from '../services/skills/list-skills';
import { saveSkill } from '../services/skills/save-skill';
import { getSkillInput, saveSkillInput } from '../services/skills/skill-inputs';
import { procedures, router } from './trpc';

export const skillsRouter = router({
  list: procedures.viewer.query(({ ctx }): Promise<SkillSummary[]> => listSkills({ ctx: ctx.serviceContext })),
  get: procedures.viewer
    .input(getSkillInput)
    .query(({ ctx, input }): Promise<SkillDetail> => getSkill({ ctx: ctx.serviceContext, input })),
  /** `created` is false when the text is that of the newest version. */
  save: procedures.operator
    .input(saveSkillInput)
    .mutation(
      ({ ctx, input }): Promise<{ name: string; version: number; created: boolean }> =>
        saveSkill({ ctx: ctx.serviceContext, input }),
    ),
});
