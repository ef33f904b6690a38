/** Whole tool outputs whose observation was truncated. */
import { eq, sql } from 'drizzle-orm';
import { NotFound } from '../../server/core/errors';
import type { Db, Queryable } from '../connection';
import { toolOutputs } from '../schema';

/** The time a single parameter takes grows with the square of its size on the embedded database; in pieces it does not. */
const PIECE_BYTES = 256 * 1024;

/** Writing the same id again (a tool that ran a second time after a crash) keeps the first. */
export async function insertToolOutput(db: Db, output: typeof toolOutputs.$inferInsert): Promise<void> {
  const { id, sessionId, content } = output;
  if (content.length <= PIECE_BYTES) {
    await db.insert(toolOutputs).values(output).onConflictDoNothing();
    return;
  }
  await db.transaction(async (tx) => {
    await tx.execute(sql`create temporary table output_pieces (n int, piece bytea) on commit drop`);
    for (let at = 0; at < content.length; at += PIECE_BYTES)
      await tx.execute(
        sql`insert into output_pieces values (${at / PIECE_BYTES}::int, ${content.subarray(at, at + PIECE_BYTES)}::bytea)`,
      );
    await tx.execute(sql`
      insert into tool_outputs (id, session_id, content)
      select ${id}, ${sessionId}, string_agg(piece, ''::bytea order by n) from output_pieces
      on conflict do nothing`);
  });
}

/** Throws NotFound. */
export async function getToolOutput(q: Queryable, id: string): Promise<typeof toolOutputs.$inferSelect> {
  const [row] = await q.select().from(toolOutputs).where(eq(toolOutputs.id, id));
  if (!row) throw new NotFound(`There is no tool output ${id}.`);
  return row;
}
