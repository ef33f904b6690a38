/** Inference backends: input schema → verb → output. */
import type { BackendCheck } from '../core/inference';
import type { BackendDetail, BackendHistory, BackendSummary, Page, WeightUpdateView } from '../core/views';
import { addBackend } from '../services/backends/add-backend';
import { backendHistory } from '../services/backends/backend-history';
import {
  addBackendInput,
  backendNameInput,
  changeBackendInput,
  checkServerInput,
  listWeightUpdatesInput,
  updateWeightsInput,
} from '../services/backends/backend-inputs';
import { changeBackend } from '../services/backends/change-backend';
import { checkServer, recheckBackend } from '../services/backends/check-backend';
import { getBackend } from '../services/backends/get-backend';
import { listBackends } from '../services/backends/list-backends';
import { listWeightUpdates } from '../services/backends/list-weight-updates';
import { pauseBackend } from '../services/backends/pause-backend';
import { removeBackend } from '../services/backends/remove-backend';
import { resumeBackend } from '../services/backends/resume-backend';
import { updateWeights } from '../services/backends/update-weights';
import { procedures, router } from './trpc';

/** What a save answers: whether anything changed, and what the servers that were asked said. */
export interface SavedBackend {
  name: string;
  changed: boolean;
  checks: BackendCheck[];
}

export const backendsRouter = router({
  list: procedures.viewer.query(({ ctx }): Promise<BackendSummary[]> => listBackends({ ctx: ctx.serviceContext })),
  get: procedures.viewer
    .input(backendNameInput)
    .query(({ ctx, input }): Promise<BackendDetail> => getBackend({ ctx: ctx.serviceContext, input })),
  history: procedures.viewer
    .input(backendNameInput)
    .query(({ ctx, input }): Promise<BackendHistory> => backendHistory({ ctx: ctx.serviceContext, input })),
  weightUpdates: procedures.viewer
    .input(listWeightUpdatesInput)
    .query(({ ctx, input }): Promise<Page<WeightUpdateView>> => listWeightUpdates({ ctx: ctx.serviceContext, input })),
  /** Asks the server at an address; stores nothing. A mutation, because it carries a key and makes a server work. */
  check: procedures.operator
    .input(checkServerInput)
    .mutation(({ ctx, input }): Promise<BackendCheck> => checkServer({ ctx: ctx.serviceContext, input })),
  /** Asks the servers of a backend again and keeps what was found. */
  recheck: procedures.operator
    .input(backendNameInput)
    .mutation(({ ctx, input }): Promise<BackendCheck[]> => recheckBackend({ ctx: ctx.serviceContext, input })),
  add: procedures.operator
    .input(addBackendInput)
    .mutation(({ ctx, input }): Promise<SavedBackend> => addBackend({ ctx: ctx.serviceContext, input })),
  change: procedures.operator
    .input(changeBackendInput)
    .mutation(({ ctx, input }): Promise<SavedBackend> => changeBackend({ ctx: ctx.serviceContext, input })),
  remove: procedures.operator
    .input(backendNameInput)
    .mutation(({ ctx, input }): Promise<{ name: string }> => removeBackend({ ctx: ctx.serviceContext, input })),
  updateWeights: procedures.operator
    .input(updateWeightsInput)
    .mutation(({ ctx, input }): Promise<WeightUpdateView> => updateWeights({ ctx: ctx.serviceContext, input })),
  pause: procedures.operator
    .input(backendNameInput)
    .mutation(({ ctx, input }): Promise<{ name: string }> => pauseBackend({ ctx: ctx.serviceContext, input })),
  resume: procedures.operator
    .input(backendNameInput)
    .mutation(({ ctx, input }): Promise<{ name: string }> => resumeBackend({ ctx: ctx.serviceContext, input })),
});
