/** What a check of a good server finds, for tests of verbs that have servers checked. */
import type { BackendCheck, RemoteKind } from '../../core/inference';
import type { ServerToCheck } from '../context';

export function checkOf({ url, kind }: ServerToCheck, more: Partial<BackendCheck> = {}): BackendCheck {
  const found: RemoteKind = kind === 'auto' ? 'vllm' : kind;
  return {
    url,
    kind: found,
    serverVersion: '0.15.0',
    ok: true,
    items: [{ id: 'reach', status: 'pass', sent: 'GET /health', received: '200', says: 'It answers.' }],
    capabilities: {
      tokenIds: true,
      logprobs: 'raw',
      canScore: true,
      entropy: false,
      constraints: [],
      weightSources: [],
      canPause: false,
      seeded: true,
      embeddings: false,
      contextLength: 4096,
      modelName: 'm',
      batchSize: 1,
      maxInFlight: 64,
    },
    fingerprint: 'f',
    checkedAtMs: 1,
    ...more,
  };
}
