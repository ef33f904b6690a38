/** What a check of a good server finds, for tests of verbs that have servers checked. */
import type { BackendCheck, RemoteKind } from '../../core/inference';
import { PLAIN_CAPABILITIES } from '../../inference/testing/capabilities';
import type { ServerToCheck } from '../context';

export function checkOf({ url, kind }: ServerToCheck, more: Partial<BackendCheck> = {}): BackendCheck {
  const found: RemoteKind = kind === 'auto' ? 'vllm' : kind;
  return {
    url,
    kind: found,
    serverVersion: '0.15.0',
    ok: true,
    items: [{ id: 'reach', status: 'pass', sent: 'GET /health', received: '200', says: 'It answers.' }],
    capabilities: PLAIN_CAPABILITIES,
    fingerprint: 'f',
    checkedAtMs: 1,
    ...more,
  };
}
