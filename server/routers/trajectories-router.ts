/** Trajectories: input schema → verb → output. Tokens travel in binary over HTTP, not here. */
import type { TrajectoryDetail } from '../core/views';
import { getTrajectory } from '../services/trajectories/get-trajectory';
import { trajectoryIdInput } from '../services/trajectories/trajectory-inputs';
import { procedures, router } from './trpc';

export const trajectoriesRouter = router({
  get: procedures.viewer
    .input(trajectoryIdInput)
    .query(({ ctx, input }): Promise<TrajectoryDetail> => getTrajectory({ ctx: ctx.serviceContext, input })),
});
