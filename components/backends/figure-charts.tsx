'use client';
import { useLocale, useTranslations } from 'next-intl';
import {
  Area,
  CartesianGrid,
  ComposedChart,
  Line,
  ReferenceDot,
  ReferenceLine,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis,
} from 'recharts';
import { count, decimal, percent } from '@/components/ui/numbers';
import type { BackendHistory } from '@/server/core/views';
import {
  FIGURES,
  type Figure,
  historyOf,
  isUntold,
  lonePoints,
  newestOf,
  seriesOf,
  versionAtMs,
  versionChanges,
} from './figure-series';
import { type SpreadRow, spreadOf } from './figure-spread';
import { FigureTip } from './figure-tip';
import { areMany, CHOSEN_COLOUR, colourOf } from './server-stroke';
import { shortAddresses } from './short-addresses';

/** A stretch of less than this has its axis told to the second. */
const SHORT_MS = 600_000;

const isShare = (figure: Figure): boolean => figure === 'kv' || figure === 'prefix';

const write = (figure: Figure, value: number | null | undefined): string =>
  isShare(figure) ? percent(value) : figure === 'tpot' ? decimal(value, 1) : count(value);

/** Beside an axis, where there is room for four signs. */
const writeShort = (figure: Figure, value: number): string => {
  if (value === 0) return '0';
  return value < 1_000 ? write(figure, value) : `${decimal(value / 1_000, value < 10_000 ? 1 : 0)}k`;
};

/**
 * Small charts, one a figure, over the same stretch of time: a line a server, or of many their spread, their median and
 * the line of the one that was chosen. New weights are marked.
 */
export function FigureCharts({
  history,
  urls,
  chosenUrl,
}: {
  history: BackendHistory;
  urls: readonly string[];
  chosenUrl: string | null;
}) {
  const t = useTranslations('backend.charts');
  const own = historyOf(history, urls);
  const changes = versionChanges(own);
  const names = shortAddresses(urls);
  const shown = FIGURES.map((figure) => ({ figure, rows: spreadOf(seriesOf(own, figure), urls.length) }));
  const place = chosenUrl === null ? -1 : urls.indexOf(chosenUrl);
  const chosen = areMany(urls.length) && place >= 0 ? place : null;
  const stretch = shown[0]?.rows ?? [];
  if (stretch.length < 2) return <p className="px-4 py-6 text-ink-2">{t('none')}</p>;
  return (
    <div className="grid grid-cols-2 gap-px bg-line-soft xl:grid-cols-4">
      {shown.map(({ figure, rows }) => (
        <Chart key={figure} figure={figure} rows={rows} history={own} names={names} chosen={chosen} changes={changes} />
      ))}
    </div>
  );
}

function Chart({
  figure,
  rows,
  history,
  names,
  chosen,
  changes,
}: {
  figure: Figure;
  rows: SpreadRow[];
  history: BackendHistory;
  /** Of the servers, for the tip. */
  names: readonly string[];
  /** Place of the server whose line is drawn among many; null for none. */
  chosen: number | null;
  changes: readonly { atMs: number; version: string }[];
}) {
  const t = useTranslations('backend.charts');
  const locale = useLocale();
  const { replicas } = history;
  const clock = (atMs: number, seconds = true) =>
    new Intl.DateTimeFormat(locale, {
      hour: '2-digit',
      minute: '2-digit',
      second: seconds ? '2-digit' : undefined,
      hourCycle: 'h23',
    }).format(atMs);
  const newest = newestOf(history, figure);
  const [low, high] = [write(figure, newest?.low), write(figure, newest?.high)];
  const span = low === high ? low : `${low}–${high}`;
  const now = newest?.summed ? t('inAll', { value: span }) : span;
  const told = rows.some(({ range }) => range !== null);
  const many = areMany(replicas.length);
  const lines = linesOf(replicas.length, chosen);
  const stretchMs = (rows.at(-1)?.atMs ?? 0) - (rows[0]?.atMs ?? 0);
  return (
    <figure className="m-0 min-w-0 bg-bg px-4 py-2 max-sm:px-3" aria-label={`${t(`figure.${figure}`)}: ${now}`}>
      <figcaption className="flex items-baseline justify-between gap-2 text-sm">
        <span className="foreign-line text-ink-2" title={t(`title.${figure}`)}>
          {t(`figure.${figure}`)}
        </span>
        <span className="shrink-0 font-semibold tabular-nums">{now}</span>
      </figcaption>
      {told ? (
        <ResponsiveContainer width="100%" height={96}>
          <ComposedChart data={rows} margin={{ top: 6, right: 2, bottom: 0, left: 2 }} title={t(`figure.${figure}`)}>
            <CartesianGrid vertical={false} stroke="var(--line-soft)" />
            <XAxis
              dataKey="atMs"
              type="number"
              domain={['dataMin', 'dataMax']}
              tickFormatter={(atMs) => clock(Number(atMs), stretchMs < SHORT_MS)}
              tick={{ fontSize: 10, fill: 'var(--ink-3)' }}
              tickLine={false}
              axisLine={{ stroke: 'var(--line)' }}
              interval="preserveStartEnd"
              minTickGap={48}
              height={16}
            />
            <YAxis
              width={36}
              domain={isShare(figure) ? [0, 1] : [0, 'auto']}
              tickCount={3}
              interval={0}
              tickFormatter={(value) => writeShort(figure, Number(value))}
              tick={{ fontSize: 10, fill: 'var(--ink-3)' }}
              tickLine={false}
              axisLine={false}
              allowDecimals={figure === 'tpot' || isShare(figure)}
            />
            <Tooltip
              isAnimationActive={false}
              wrapperStyle={{ zIndex: 10 }}
              content={({ active, label }) => {
                const row = active ? rows.find(({ atMs }) => atMs === Number(label)) : undefined;
                if (!row) return null;
                return (
                  <FigureTip
                    row={row}
                    names={names}
                    many={many}
                    chosen={chosen}
                    clock={clock(row.atMs)}
                    version={versionAtMs(changes, row.atMs + history.stepMs / 2)}
                    write={(value) => write(figure, value)}
                  />
                );
              }}
            />
            {changes.map(({ atMs, version }) => (
              <ReferenceLine key={version} x={atMs} stroke="var(--line-field)" strokeDasharray="2 2" />
            ))}
            {many ? (
              <Area dataKey="range" stroke="none" fill="var(--line)" isAnimationActive={false} activeDot={false} />
            ) : null}
            {lines.map(({ column, colour }) => (
              <Line
                key={column}
                dataKey={column}
                dot={false}
                strokeWidth={1.5}
                isAnimationActive={false}
                stroke={colour}
              />
            ))}
            {lines.flatMap(({ column, colour }) =>
              lonePoints(rows, column).map(({ atMs, value }) => (
                <ReferenceDot key={`${column} ${atMs}`} x={atMs} y={value} r={1.5} fill={colour} stroke="none" />
              )),
            )}
          </ComposedChart>
        </ResponsiveContainer>
      ) : (
        <p className="flex h-24 items-center text-sm text-ink-3">
          {t(isUntold(history, figure) ? 'untold' : 'noReading')}
        </p>
      )}
    </figure>
  );
}

interface FigureLine {
  column: `s${number}` | 'median';
  colour: string;
}

function linesOf(servers: number, chosen: number | null): FigureLine[] {
  if (!areMany(servers))
    return Array.from({ length: servers }, (_, server) => ({ column: `s${server}`, colour: colourOf(server) }));
  const median: FigureLine = { column: 'median', colour: 'var(--ink-2)' };
  return chosen === null ? [median] : [median, { column: `s${chosen}`, colour: CHOSEN_COLOUR }];
}
