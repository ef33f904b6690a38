/** For verbs that read parts of a run: an unknown run is said to be unknown, not shown as empty. */
import type { Queryable } from '../../../db/connection';
import { runExists } from '../../../db/queries/event-data';
import { NotFound } from '../../core/errors';

/** Throws NotFound. */
export async function requireRun(q: Queryable, runId: string): Promise<void> {
  if (!(await runExists(q, runId))) throw new NotFound(`There is no run ${runId}.`);
}
