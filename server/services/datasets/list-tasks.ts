/** The tasks of a dataset, in their order, a page at a time. */
import type { z } from 'zod';
import { listTasks as queryTasks } from '../../../db/queries/catalog';
import type { Page, TaskView } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { listTasksInput } from './dataset-inputs';

/** Throws NotFound. */
export async function listTasks({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof listTasksInput>;
}): Promise<Page<TaskView>> {
  requireRole(ctx, 'viewer', 'Looking at a dataset');
  return queryTasks(ctx.database.db, parseInput(listTasksInput, input));
}
