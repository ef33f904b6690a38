/**
 * Spans: how long a named piece of work took and whether it failed, in the log (level debug) and in the histogram
 * `studio_span_seconds`. Spans of one piece of work share a trace id, which callers pass down.
 */
import { randomBytes } from 'node:crypto';
import type { Logger } from './logger';
import { type Metrics, metrics as processMetrics } from './metrics';

export interface Span {
  traceId: string;
  spanId: string;
  /** Facts learnt on the way. Never model text, never secrets. */
  set(attributes: Record<string, string | number | boolean>): void;
}

export interface Tracer {
  span<T>(name: string, parent: Pick<Span, 'traceId' | 'spanId'> | null, work: (span: Span) => Promise<T>): Promise<T>;
}

export function createTracer(logger: Logger, metrics: Metrics = processMetrics): Tracer {
  const seconds = metrics.histogram('studio_span_seconds', 'How long pieces of work took, by name and outcome.');
  return {
    async span(name, parent, work) {
      const attributes: Record<string, string | number | boolean> = {};
      const span: Span = {
        traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
        spanId: randomBytes(8).toString('hex'),
        set: (more) => void Object.assign(attributes, more),
      };
      const startedAt = performance.now();
      let outcome: 'ok' | 'error' = 'error';
      try {
        const result = await work(span);
        outcome = 'ok';
        return result;
      } finally {
        const durationMs = performance.now() - startedAt;
        seconds.observe(durationMs / 1000, { name, outcome });
        logger.debug(
          {
            span: name,
            traceId: span.traceId,
            spanId: span.spanId,
            parentId: parent?.spanId,
            durationMs,
            outcome,
            ...attributes,
          },
          'span',
        );
      }
    },
  };
}
