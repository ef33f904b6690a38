/** Takes a dataset in, all of it or nothing. Datasets do not change afterwards: runs refer to their tasks. */
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { insertDataset } from '../../../db/queries/catalog';
import { auditEntry } from '../../observability/audit';
import { requireRole, type ServiceContext } from '../context';
import { parseInput } from '../inputs';
import { importDatasetInput } from './dataset-inputs';
import { parseDataset } from './parse-dataset';

/**
 * `created` is false when a dataset of this name has these very tasks. Throws Invalid with the number of the first line
 * that is wrong, Conflict when the name is taken by other tasks.
 */
export async function importDataset({
  ctx,
  input,
}: {
  ctx: ServiceContext;
  input: z.input<typeof importDatasetInput>;
}): Promise<{ name: string; taskCount: number; created: boolean }> {
  requireRole(ctx, 'operator', 'Importing a dataset');
  const { name, jsonl } = parseInput(importDatasetInput, input);
  const tasks = parseDataset(jsonl);
  const hash = createHash('sha256');
  for (const task of tasks) hash.update(`${JSON.stringify(task)}\n`, 'utf8');
  const contentHash = hash.digest('hex');
  return ctx.database.db.transaction(async (tx) => {
    const id = ctx.ambient.newId('dst');
    const { created } = await insertDataset(tx, { id, name, contentHash, nowMs: ctx.ambient.now(), tasks });
    if (created)
      await auditEntry(tx, ctx, {
        actionType: 'import_dataset',
        resource: `dataset://${name}`,
        operation: 'import',
        status: 'success',
        details: { taskCount: tasks.length, contentHash },
      });
    return { name, taskCount: tasks.length, created };
  });
}
