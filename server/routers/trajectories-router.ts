/** Trajectories: input schema → verb → output. Tokens travel in binary over HTTP, not here. */
import type { TrajectoryDetail } from '../core/views';
import { getTrajectory } from '../services/trajectories/get-trajectory';
import { tokenTexts } from '../services/trajectories/token-texts';
import { tokenTextsInput, trajectoryIdInput } from '../services/trajectories/trajectory-inputs';
import { procedures, router } from './trpc';

export const trajectoriesRouter = router({
  get: procedures.viewer
    .input(trajectoryIdInput)
    .query(({ ctx, input }): Promise<TrajectoryDetail> => getTrajectory({ ctx: ctx.serviceContext, input })),
  /** Bytes of ids that are not among the trajectory's own tokens. */
  tokenTexts: procedures.viewer
    .input(tokenTextsInput)
    .query(({ ctx, input }): Promise<(Uint8Array | null)[]> => tokenTexts({ ctx: ctx.serviceContext, input })),
});
