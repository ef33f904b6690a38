/** Opens what a row of the backends table describes: a model file in a process of our own, or servers somewhere. */
import { isAbsolute, join } from 'node:path';
import type { BackendRow } from '../../db/queries/catalog';
import type { Ambient } from '../core/ambient';
import { Invalid } from '../core/errors';
import { remoteSettingsSchema } from '../core/inference-settings';
import type { InferenceBackend } from '../inference/backend';
import { EmbeddedBackend } from '../inference/embedded/embedded-backend';
import { openRemote } from '../inference/open-remote';
import type { StoredUpdates } from '../inference/router/left-behind';
import type { Logger } from '../observability/logger';

export interface OpenBackendOptions {
  /** Folder of package.json; model paths are relative to it. */
  packageRoot: string;
  /** Of an embedded model. */
  threads: number;
  logger: Logger;
  ambient: Ambient;
  /** The keys of a backend's servers, by address, and the one that signs requests for new weights. Throw Unavailable when they cannot be read. */
  keysOf(backendId: string): Promise<{ keyFor(url: string): string | null; controlKey(): string | null }>;
  /** A server of the backend was started again: what is stored of it may not hold any more. */
  serverRestarted(backendName: string): void;
}

/**
 * A paused one is opened paused. Throws from the error family, in a sentence that names the backend.
 * @param signal gives up the loading of a model
 */
export async function openBackend(
  row: BackendRow,
  updates: StoredUpdates,
  options: OpenBackendOptions,
  signal: AbortSignal,
): Promise<InferenceBackend> {
  const { packageRoot, threads, logger, ambient } = options;
  if (row.kind !== 'embedded') {
    const settings = remoteSettingsSchema.safeParse(row.settings);
    if (!settings.success)
      throw new Invalid(`The settings of the backend ${row.name} cannot be read. Add it again.`, {
        issues: settings.error.issues,
      });
    const keys = await options.keysOf(row.id);
    return openRemote({
      name: row.name,
      kind: row.kind,
      settings: settings.data,
      keyFor: keys.keyFor,
      controlKey: keys.controlKey(),
      paused: row.paused,
      updates,
      logger,
      ambient,
      onRestart: () => options.serverRestarted(row.name),
    });
  }
  const { modelPath } = row.settings;
  if (typeof modelPath !== 'string')
    throw new Invalid(
      `The backend ${row.name} names no model file. Add it again with: studio backend ${row.name} --model FILE`,
    );
  const path = isAbsolute(modelPath) ? modelPath : join(packageRoot, modelPath);
  return EmbeddedBackend.open({ name: row.name, modelPath: path, threads, logger, signal });
}
