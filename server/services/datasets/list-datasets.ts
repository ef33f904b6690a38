/** The datasets, by name. */
import { listDatasets as queryDatasets } from '../../../db/queries/catalog';
import type { DatasetSummary } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';

export async function listDatasets({ ctx }: { ctx: ServiceContext }): Promise<DatasetSummary[]> {
  requireRole(ctx, 'viewer', 'Listing datasets');
  const rows = await queryDatasets(ctx.database.db);
  return rows.map(({ name, taskCount, createdAtMs }) => ({ name, taskCount, createdAtMs }));
}
