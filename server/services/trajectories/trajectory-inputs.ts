/** What callers may send to the verbs of trajectories. */
import { z } from 'zod';
import { idSchema } from '../inputs';

export const trajectoryIdInput = z.object({ trajectoryId: idSchema('trajectory') });
export const tokensInput = z.object({
  trajectoryId: idSchema('trajectory'),
  /** Which token sequence, from 0; more than one only after a compaction or a template that broke the prefix. */
  sequence: z.coerce.number().int().min(0).max(1_000_000).default(0),
});
export const tokenTextsInput = z.object({
  trajectoryId: idSchema('trajectory'),
  ids: z.array(z.number().int().min(0).max(2_147_483_647)).max(64),
});
export const outputIdInput = z.object({
  /** Names a stored tool output. */
  outputId: z.string().regex(/^[0-9A-Za-z_-]{1,80}$/, 'is not an identifier of the studio'),
});
