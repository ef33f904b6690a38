/** Datasets: input schema → verb → output. */
import type { DatasetSummary, Page, TaskView } from '../core/views';
import { importDatasetInput, listTasksInput } from '../services/datasets/dataset-inputs';
import { importDataset } from '../services/datasets/import-dataset';
import { listDatasets } from '../services/datasets/list-datasets';
import { listTasks } from '../services/datasets/list-tasks';
import { procedures, router } from './trpc';

export const datasetsRouter = router({
  list: procedures.viewer.query(({ ctx }): Promise<DatasetSummary[]> => listDatasets({ ctx: ctx.serviceContext })),
  tasks: procedures.viewer
    .input(listTasksInput)
    .query(({ ctx, input }): Promise<Page<TaskView>> => listTasks({ ctx: ctx.serviceContext, input })),
  import: procedures.operator
    .input(importDatasetInput)
    .mutation(
      ({ ctx, input }): Promise<{ name: string; taskCount: number; created: boolean }> =>
        importDataset({ ctx: ctx.serviceContext, input }),
    ),
});
