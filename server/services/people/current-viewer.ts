/** Who the caller is. */
import { Forbidden } from '../../core/errors';
import type { Viewer } from '../../core/views';
import { requireRole, type ServiceContext } from '../context';

export async function currentViewer({ ctx }: { ctx: ServiceContext }): Promise<Viewer> {
  requireRole(ctx, 'viewer', 'Asking who you are');
  const { userId, name, role } = ctx.actor;
  if (userId === null) throw new Forbidden('The studio itself is no person.');
  return { userId, name, role };
}
