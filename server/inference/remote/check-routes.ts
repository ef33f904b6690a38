/** Items of the checklist about what a server offers beside tokens: new weights, metrics, embeddings. */
import { isStudioError } from '../../core/errors';
import { readMetrics } from '../server-metrics';
import { type Probe, type Verdict, within } from './check-probe';
import type { WeightRoutes } from './protocol';
import { fitName } from './server-words';

const SOURCES = { checkpoint: 'checkpoint', lora: 'LoRA adapter', external: 'tensors that a trainer moves' };

/** Reads the label, or has the key tried that signs: nothing is loaded or paused. */
export async function checkWeights({
  http,
  protocol,
  facts,
  server,
}: Probe): Promise<Verdict & { routes: WeightRoutes | null }> {
  const routes = protocol.weights(facts);
  if (!routes || routes.sources.length === 0)
    return {
      routes,
      status: 'absent',
      says: facts.routes.has('control')
        ? 'Its routes for new weights want a control key, and none was given; it serves what it was started with.'
        : 'It offers no way to bring new weights; it serves what it was started with.',
    };
  await routes.checkKey?.(http);
  const keeps = routes.keepsLabel !== false;
  // Which label it is would be another one minutes later; that it can be read and kept is what counts here.
  if (keeps) fitName(server, 'weights', await routes.version(http));
  const ways = routes.sources.map((source) => SOURCES[source]).join(', ');
  const label = keeps ? 'it keeps their label' : 'it keeps no label for them, so the studio does';
  return {
    routes,
    status: 'pass',
    says: `New weights can come as: ${ways}; ${label}${routes.canPause ? '' : '; it cannot be paused'}.`,
  };
}

export async function checkMetrics({ http, protocol }: Probe, nowMs: number): Promise<Verdict> {
  const { metrics } = protocol;
  if (!metrics)
    return { status: 'absent', says: 'A server of this kind has no metrics; live figures are those counted here.' };
  const { status, body } = await http.text('GET', metrics.route, undefined, { accept: [404, 405, 501] });
  const found = status < 300 ? readMetrics(body, metrics, nowMs) : null;
  if (found && (found.running !== null || found.generatedTokens !== null))
    return { status: 'pass', says: 'Its metrics are read for the live figures.' };
  return {
    status: 'warn',
    says: `${metrics.route} has no metrics that are known here, so live figures are only those counted here. Start the server with metrics enabled.`,
  };
}

export async function checkEmbeddings(probe: Probe): Promise<Verdict & { embeddings: boolean }> {
  const { http, protocol, facts } = probe;
  const absent = { embeddings: false, status: 'absent' as const, says: 'It does not embed texts.' };
  if (!protocol.embed) return absent;
  try {
    const [vector] = await within(
      probe,
      async (signal) => (await protocol.embed?.(http, facts, ['zqx'], signal)) ?? [],
    );
    if (!vector?.length) return absent;
    return { embeddings: true, status: 'pass', says: `It embeds texts as vectors of length ${vector.length}.` };
  } catch (error) {
    if (isStudioError(error)) return absent;
    throw error;
  }
}
