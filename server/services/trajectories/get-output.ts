/** The whole output of a tool whose observation was cut. */
import type { z } from 'zod';
import { getToolOutput } from '../../../db/queries/tool-outputs';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { outputIdInput } from './trajectory-inputs';

/** Hostile bytes: to be saved, never drawn. Throws NotFound. */
export async function getOutput({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof outputIdInput>;
}): Promise<{ content: Uint8Array }> {
  requireRole(ctx, 'viewer', 'Reading a tool output');
  const { outputId } = parseInput(outputIdInput, input);
  const { content } = await getToolOutput(ctx.database.db, outputId);
  return { content };
}
