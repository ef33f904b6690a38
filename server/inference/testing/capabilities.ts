/** What most tests want of a backend: it samples, gives raw numbers, scores, and no more. */
import type { BackendCapabilities } from '../backend';

export const PLAIN_CAPABILITIES: BackendCapabilities = {
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
};
