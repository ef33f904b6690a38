/** What is drawn of more servers than lines can be told apart: between which values they lie, and round which. */
import type { SeriesRow } from './figure-series';

export interface SpreadRow extends SeriesRow {
  /** Lowest and highest value of the moment; null where no server told. */
  range: [low: number, high: number] | null;
  median: number | null;
  /** Places of the servers with these values, the first ones of several. */
  lowest: number | null;
  highest: number | null;
}

/** The same rows with the spread of each. Of an even number of values the median is the mean of the two in the middle. */
export function spreadOf(rows: readonly SeriesRow[], servers: number): SpreadRow[] {
  return rows.map((row) => {
    const told = Array.from({ length: servers }, (_, server) => ({ server, value: row[`s${server}`] ?? null }))
      .flatMap(({ server, value }) => (value === null ? [] : [{ server, value }]))
      .sort((a, b) => a.value - b.value || a.server - b.server);
    const least = told[0];
    const most = told.at(-1);
    if (!least || !most) return { ...row, range: null, median: null, lowest: null, highest: null };
    const middle = told.slice((told.length - 1) >> 1, (told.length >> 1) + 1);
    return {
      ...row,
      range: [least.value, most.value],
      median: middle.reduce((sum, { value }) => sum + value, 0) / middle.length,
      lowest: least.server,
      highest: told.find(({ value }) => value === most.value)?.server ?? most.server,
    };
  });
}
