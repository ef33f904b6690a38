/**
 * Counters, gauges and histograms of this process, written out in the Prometheus text format at GET /api/metrics.
 * Label values come from closed lists or route patterns, never from what a caller or a model wrote.
 */
export type Labels = Readonly<Record<string, string>>;

export interface Counter {
  add(amount?: number, labels?: Labels): void;
}
export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

export interface Metrics {
  counter(name: string, help: string): Counter;
  /** `buckets` are upper bounds in the unit of the name, ascending. */
  histogram(name: string, help: string, buckets?: readonly number[]): Histogram;
  /** Read when the metrics are. A second registration of one name replaces the first. */
  gauge(name: string, help: string, read: () => number): void;
  /** Prometheus text exposition format 0.0.4. */
  text(): string;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export function createMetrics(): Metrics {
  const families = new Map<string, { help: string; type: string; lines: () => string[]; handle: unknown }>();
  const register = <T>(
    name: string,
    help: string,
    type: string,
    make: () => { lines: () => string[]; handle: T },
  ): T => {
    const known = families.get(name);
    if (known && type !== 'gauge') {
      if (known.type !== type) throw new Error(`The metric ${name} is a ${known.type}, not a ${type}.`);
      return known.handle as T;
    }
    const made = make();
    families.set(name, { help, type, ...made });
    return made.handle;
  };
  return {
    counter: (name, help) => register(name, help, 'counter', () => makeCounter(name)),
    histogram: (name, help, buckets = SECONDS) => register(name, help, 'histogram', () => makeHistogram(name, buckets)),
    gauge: (name, help, read) =>
      register(name, help, 'gauge', () => ({ lines: () => [`${name} ${number(read())}`], handle: undefined })),
    text() {
      const out: string[] = [];
      for (const [name, family] of families) {
        out.push(
          `# HELP ${name} ${family.help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')}`,
          `# TYPE ${name} ${family.type}`,
        );
        out.push(...family.lines());
      }
      return `${out.join('\n')}\n`;
    },
  };
}

function makeCounter(name: string): { lines: () => string[]; handle: Counter } {
  const values = new Map<string, number>();
  return {
    handle: {
      add(amount = 1, labels = {}) {
        const key = labelText(labels);
        values.set(key, (values.get(key) ?? 0) + amount);
      },
    },
    lines: () => [...values].map(([labels, value]) => `${name}${wrap(labels)} ${number(value)}`),
  };
}

function makeHistogram(name: string, bounds: readonly number[]): { lines: () => string[]; handle: Histogram } {
  const series = new Map<string, { counts: number[]; sum: number; count: number }>();
  return {
    handle: {
      observe(value, labels = {}) {
        const key = labelText(labels);
        let one = series.get(key);
        if (!one) {
          one = { counts: bounds.map(() => 0), sum: 0, count: 0 };
          series.set(key, one);
        }
        one.sum += value;
        one.count += 1;
        const at = bounds.findIndex((bound) => value <= bound);
        if (at >= 0) one.counts[at] = (one.counts[at] ?? 0) + 1;
      },
    },
    lines: () =>
      [...series].flatMap(([labels, one]) => {
        let running = 0;
        const buckets = bounds.map((bound, i) => {
          running += one.counts[i] ?? 0;
          return `${name}_bucket${wrap(labels, `le="${bound}"`)} ${running}`;
        });
        return [
          ...buckets,
          `${name}_bucket${wrap(labels, 'le="+Inf"')} ${one.count}`,
          `${name}_sum${wrap(labels)} ${number(one.sum)}`,
          `${name}_count${wrap(labels)} ${one.count}`,
        ];
      }),
  };
}

function labelText(labels: Labels): string {
  return Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}="${value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')}"`)
    .join(',');
}

function wrap(labels: string, extra = ''): string {
  const all = [labels, extra].filter(Boolean).join(',');
  return all ? `{${all}}` : '';
}

function number(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  return String(value);
}

/** The metrics of this process. */
export const metrics: Metrics = createMetrics();
