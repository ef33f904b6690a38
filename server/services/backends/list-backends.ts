/** The inference backends, the default one first, and whether each answers now. */
import { listBackends as queryBackends } from '../../../db/queries/catalog';
import type { BackendSummary } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';

export async function listBackends({ ctx }: { ctx: ServiceContext }): Promise<BackendSummary[]> {
  requireRole(ctx, 'viewer', 'Listing backends');
  const rows = await queryBackends(ctx.database.db);
  return Promise.all(
    rows.map(async ({ name, kind, isDefault }) => {
      const { ok, message, modelName } = await ctx.process.backendHealth(name);
      return { name, kind, modelName, isDefault, health: { ok, message }, urls: [] };
    }),
  );
}
