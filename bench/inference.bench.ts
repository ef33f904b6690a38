/**
 * What the client of inference servers costs, and whether it keeps a server full: many requests in flight with a twin
 * whose tokens take a fixed time, in a process of its own. Beside it a loop of plain `fetch` that sends the same and
 * parses the JSON, and does nothing else of what is needed. Both begin with requests of all lengths, so that answers
 * come one after the other as in the middle of a long run, and are measured from then on.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemAmbient } from '../server/core/ambient';
import { remoteSettingsSchema } from '../server/core/inference-settings';
import type { GenerationRequest } from '../server/inference/backend';
import { openRemote } from '../server/inference/open-remote';
import { startTwinProcess, type TwinProcess } from '../server/inference/testing/twin/twin-process';
import { silentLogger } from '../server/observability/logger';
import { boundedFigure, type Figure, median, printReport, progress, round } from './figure';

const IN_FLIGHT = 512;
/** The rest waits in the server: a queue that is short and never empty. */
const SLOTS = 448;
const TOKENS = 512;
const PROMPT_TOKENS = 256;
/** A completion takes two seconds, so the server ends about 220 a second. */
const MS_PER_TOKEN = 4;
const REQUESTS = 6 * IN_FLIGHT;
const TURNS = 3;

interface Measured {
  cpuPerRequest: number;
  /** Of the twin's slots, while there was work that waited for one. */
  idlePercent: number;
  delayP99: number;
}

/** Sends one request for so many tokens and reads all of the answer. */
type Client = (tokens: number) => Promise<void>;

interface Counted {
  atMs: number;
  busyMs: number;
  cpu: NodeJS.CpuUsage;
  answers: number;
}

async function measure(twin: TwinProcess, client: Client): Promise<Measured> {
  let sent = 0;
  let answers = 0;
  const count = async (): Promise<Counted> => {
    const at = { cpu: process.cpuUsage(), answers };
    const { busyMs } = await twin.counters();
    return { ...at, busyMs, atMs: performance.now() };
  };
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const counted: Promise<Counted>[] = [];
  const one = async (): Promise<void> => {
    while (sent < REQUESTS) {
      const place = sent++;
      // The last is about to be sent: from now on nothing waits.
      if (sent === REQUESTS) {
        delay.disable();
        counted.push(count());
      }
      await client(place < IN_FLIGHT ? Math.ceil((TOKENS * (place + 1)) / IN_FLIGHT) : TOKENS);
      if (++answers === IN_FLIGHT) {
        delay.enable();
        counted.push(count());
      }
    }
  };
  globalThis.gc?.();
  await Promise.all(Array.from({ length: IN_FLIGHT }, one));
  const [from, to] = await Promise.all(counted);
  if (!from || !to) throw new Error('The run was over before it was measured.');
  const cpu = to.cpu.user + to.cpu.system - from.cpu.user - from.cpu.system;
  return {
    cpuPerRequest: cpu / 1000 / (to.answers - from.answers),
    idlePercent: 100 * (1 - (to.busyMs - from.busyMs) / (SLOTS * (to.atMs - from.atMs))),
    delayP99: delay.percentile(99) / 1e6,
  };
}

const prompt = Int32Array.from({ length: PROMPT_TOKENS }, (_, k) => 32 + (k % 90));
const MISSING = 'Tokens are missing.';
const options = { temperature: 1, topP: 1, topK: 0, minP: 0, stop: [] };

const twin = await startTwinProcess({
  kind: 'sglang',
  options: { serviceModel: { msPerToken: MS_PER_TOKEN, slots: SLOTS, tokens: TOKENS }, keepLog: false },
});
const backend = openRemote({
  name: 'bench',
  kind: 'sglang',
  settings: remoteSettingsSchema.parse({ replicas: [{ url: twin.url }], maxInFlight: IN_FLIGHT }),
  keyFor: () => null,
  logger: silentLogger,
  ambient: systemAmbient(),
});

let seed = 0;
const ours: Client = async (tokens) => {
  const affinityKey = `trj_${++seed}`;
  const request: GenerationRequest = {
    promptIds: prompt,
    options: { ...options, maxTokens: tokens, seed },
    affinityKey,
  };
  const [settled] = await backend.generate([request]);
  if (settled?.status !== 'fulfilled') throw settled?.reason;
  const { ids, logprobs, byteEnds } = settled.value;
  if (ids.length !== tokens || logprobs.length !== tokens || byteEnds.length !== tokens) throw new Error(MISSING);
};

const plainFetch: Client = async (tokens) => {
  const body = {
    rid: `plain-${++seed}`,
    input_ids: Array.from(prompt),
    sampling_params: { max_new_tokens: tokens, temperature: 1, sampling_seed: seed, skip_special_tokens: false },
    return_logprob: true,
    logprob_start_len: -1,
    stream: false,
  };
  const response = await fetch(`${twin.url}/generate`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const reply = (await response.json()) as { output_ids: number[] };
  if (reply.output_ids.length !== tokens) throw new Error(MISSING);
};

try {
  const runs: Measured[] = [];
  const plain: Measured[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const [a, b] = [await measure(twin, plainFetch), await measure(twin, ours)];
    plain.push(a);
    runs.push(b);
    progress(
      `inference: turn ${turn + 1}: ${round(b.cpuPerRequest)} ms of CPU a request (plain fetch ${round(a.cpuPerRequest)}), ` +
        `${round(b.idlePercent)}% idle (${round(a.idlePercent)}%), loop delay p99 ${round(b.delayP99)} ms (${round(a.delayP99)})`,
    );
  }
  const beside = (figure: Figure, of: (one: Measured) => number): Figure => {
    const baseline = median(plain.map(of));
    return { ...figure, baseline: round(baseline), ratio: round(median(runs.map(of)) / baseline) };
  };
  const cpu = (one: Measured) => one.cpuPerRequest;
  const idle = (one: Measured) => one.idlePercent;
  const delay = (one: Measured) => one.delayP99;
  printReport({
    figures: {
      [`inference: CPU a request of ${TOKENS} tokens with log-probabilities, ${IN_FLIGHT} in flight, beside plain fetch`]:
        beside(boundedFigure(runs.map(cpu), 'ms', { below: 1.5 }), cpu),
      'inference: capacity of the server idle while work waits, beside plain fetch': beside(
        boundedFigure(runs.map(idle), '%', { below: 3 }),
        idle,
      ),
      'inference: event-loop delay, 99th percentile, beside plain fetch': beside(
        boundedFigure(runs.map(delay), 'ms', { below: 20 }),
        delay,
      ),
    },
  });
} finally {
  await backend.close();
  await twin.close();
}
