/** How a backend is that did not tell in time: nobody answers there, or its model is only still being loaded. */
import type { BackendHealth, BackendKind } from '../../core/inference';
import { PATIENCE_MS } from './patience';

/** @param isOpen it could be asked */
export function lateHealth(kind: BackendKind, isOpen: boolean): BackendHealth {
  // Servers are not waited for when they are opened; a model in the studio is there only once it is loaded.
  if (kind === 'embedded' && !isOpen) return { ok: false, held: true, message: 'Its model is still loading.' };
  return { ok: false, message: `It has not answered for ${PATIENCE_MS / 1000} seconds.` };
}
