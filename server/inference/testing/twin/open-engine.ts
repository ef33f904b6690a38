/** The engine that a twin's options ask for, with a count of what it did. */
import type { EngineGeneration, EngineRequest, TwinEngine } from './engine';
import type { TwinFaults } from './faults';
import { ModelEngine } from './model-engine';
import { ServiceEngine, type ServiceModel } from './service-engine';

export interface TwinModel {
  /** A GGUF file: its tokenizer, its template and its numbers. */
  modelPath?: string;
  /** Instead of a model: canned tokens in real time. */
  serviceModel?: ServiceModel;
  /** Requests that run at once on a model. Default 4. */
  slots?: number;
  /** Default: what the model was trained on. */
  contextLength?: number;
}

export interface TwinCounters {
  /** Generations that ended, whatever their end. */
  requests: number;
  aborted: number;
  promptTokens: number;
  cachedTokens: number;
  generatedTokens: number;
  running: number;
  waiting: number;
  mostRunning: number;
  slots: number;
  /** Milliseconds that slots were taken, all together, up to now. */
  busyMs: number;
}

export interface CountedEngine {
  engine: TwinEngine;
  generate(request: EngineRequest): Promise<EngineGeneration>;
  counters(): TwinCounters;
}

export async function openEngine(model: TwinModel, faults: TwinFaults): Promise<CountedEngine> {
  const engine = await engineOf(model, faults);
  const sums = { requests: 0, aborted: 0, promptTokens: 0, cachedTokens: 0, generatedTokens: 0 };
  return {
    engine,
    generate: async (request) => {
      const generation = await engine.generate(request);
      sums.requests++;
      if (generation.finish?.kind === 'abort') sums.aborted++;
      sums.promptTokens += generation.promptTokens;
      sums.cachedTokens += generation.cachedTokens;
      sums.generatedTokens += generation.tokens.length;
      return generation;
    },
    counters: () => {
      const { running, waiting, mostRunning, slots, busyMs } = engine.scheduler;
      return { ...sums, running, waiting, mostRunning, slots, busyMs };
    },
  };
}

async function engineOf({ modelPath, serviceModel, slots, contextLength }: TwinModel, faults: TwinFaults) {
  if (serviceModel) return new ServiceEngine(serviceModel, faults);
  if (modelPath === undefined) throw new Error('A twin needs a modelPath or a serviceModel.');
  return ModelEngine.open({ modelPath, slots: slots ?? 4, contextLength: contextLength ?? null, faults });
}
