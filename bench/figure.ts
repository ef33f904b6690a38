/** How benches measure and what they report. */

export interface Figure {
  value: number;
  unit: string;
  /** The promise in words; null for a figure that is only watched. */
  target: string | null;
  met: boolean | null;
  /** What the value is compared with, in the same unit. */
  baseline?: number;
  ratio?: number;
  /** Every single measurement, in order. */
  runs: number[];
}

export interface Report {
  figures: Record<string, Figure>;
  skipped: Record<string, string>;
}

/** Milliseconds of CPU, user and system, that this process has used. */
export function cpuMs(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/**
 * Runs two ways of doing `items` things turn by turn and compares their speed.
 * @returns value and baseline in `unit` (millions a second of CPU), ratio = median speed / median baseline speed
 */
export function compareSpeed(options: {
  items: number;
  turns: number;
  unit: string;
  least: number;
  /** Not measured: lets go of what the turn before left. */
  before?(): void;
  measured(): void;
  baseline(): void;
}): Figure {
  const { items, turns, unit, least } = options;
  const speedOf = (work: () => void): number => {
    options.before?.();
    globalThis.gc?.();
    // The collector's threads go on for a moment; their time belongs to the turn before.
    Atomics.wait(pause, 0, 0, 30);
    const before = process.cpuUsage();
    work();
    return items / 1000 / cpuMs(before);
  };
  const pause = new Int32Array(new SharedArrayBuffer(4));
  // The first turn of each is for the compiler.
  options.baseline();
  options.measured();
  const runs: number[] = [];
  const baselines: number[] = [];
  for (let turn = 0; turn < turns; turn++) {
    baselines.push(speedOf(options.baseline));
    runs.push(speedOf(options.measured));
  }
  const [value, baseline] = [median(runs), median(baselines)];
  const ratio = value / baseline;
  return {
    value: round(value),
    unit,
    target: `ratio >= ${least}`,
    met: ratio >= least,
    baseline: round(baseline),
    ratio: round(ratio),
    runs: runs.map(round),
  };
}

/** A figure that must stay below (or reach) a bound; the median counts. */
export function boundedFigure(
  runs: readonly number[],
  unit: string,
  bound: { below: number } | { atLeast: number } | null,
): Figure {
  const value = median(runs);
  const common = { value: round(value), unit, runs: runs.map(round) };
  if (!bound) return { ...common, target: null, met: null };
  if ('below' in bound) return { ...common, target: `< ${bound.below} ${unit}`, met: value < bound.below };
  return { ...common, target: `>= ${bound.atLeast} ${unit}`, met: value >= bound.atLeast };
}

/** Three digits that mean something. */
export function round(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}

export function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** The last thing a bench does: its report, the only line on standard output. */
export function printReport(report: Partial<Report>): void {
  process.stdout.write(`${JSON.stringify({ figures: {}, skipped: {}, ...report })}\n`);
}
