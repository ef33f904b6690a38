/** Whole tool outputs whose observation was truncated. */
import { eq } from 'drizzle-orm';
import { NotFound } from '../../server/core/errors';
import type { Queryable } from '../connection';
import { toolOutputs } from '../schema';

/** Writing the same id again (a tool that ran a second time after a crash) keeps the first. */
export async function insertToolOutput(q: Queryable, output: typeof toolOutputs.$inferInsert): Promise<void> {
  await q.insert(toolOutputs).values(output).onConflictDoNothing();
}

/** Throws NotFound. */
export async function getToolOutput(q: Queryable, id: string): Promise<typeof toolOutputs.$inferSelect> {
  const [row] = await q.select().from(toolOutputs).where(eq(toolOutputs.id, id));
  if (!row) throw new NotFound(`There is no tool output ${id}.`);
  return row;
}
