/** The inference backends, the default one first, and whether each answers now. */
import { listBackends as queryBackends } from '../../../db/queries/catalog';
import type { BackendSummary } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';
import { remoteSettingsOf, urlsOf } from './backend-settings';
import { lateHealth } from './late-health';
import { withPatience } from './patience';

/** Never waits longer than `PATIENCE_MS` for one that does not answer. */
export async function listBackends({ ctx }: { ctx: ServiceContext }): Promise<BackendSummary[]> {
  requireRole(ctx, 'viewer', 'Listing backends');
  const rows = await queryBackends(ctx.database.db);
  return Promise.all(
    rows.map(async (row) => {
      const { name, kind, isDefault } = row;
      const settings = remoteSettingsOf(row);
      const checked = settings?.check?.capabilities?.modelName ?? settings?.model ?? null;
      const { backendHealth, backendLive } = ctx.process;
      const opening = backendLive(name).then(
        () => true,
        () => true,
      );
      const [told, isOpen] = await Promise.all([withPatience(backendHealth(name), null), withPatience(opening, false)]);
      const { modelName, ...health } = told ?? { ...lateHealth(kind, isOpen), modelName: null };
      return {
        name,
        kind,
        modelName: modelName ?? checked,
        isDefault,
        health,
        urls: urlsOf(settings),
        canScore: kind === 'embedded' ? true : (settings?.check?.capabilities?.canScore ?? null),
      };
    }),
  );
}
