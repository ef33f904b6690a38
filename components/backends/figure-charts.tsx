'use client';
import { useLocale, useTranslations } from 'next-intl';
import {
  CartesianGrid,
  Line,
  LineChart,
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
  lonePoints,
  newestOf,
  type SeriesRow,
  seriesOf,
  versionAtMs,
  versionChanges,
} from './figure-series';
import { ServerStroke, strokeOf } from './server-stroke';
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

/** Small charts, one a figure, over the same stretch of time; a line a server. New weights are marked. */
export function FigureCharts({ history, urls }: { history: BackendHistory; urls: readonly string[] }) {
  const t = useTranslations('backend.charts');
  const own = historyOf(history, urls);
  const changes = versionChanges(own);
  const names = shortAddresses(urls);
  const shown = FIGURES.map((figure) => ({ figure, rows: seriesOf(own, figure) }));
  const stretch = shown[0]?.rows ?? [];
  if (stretch.length < 2) return <p className="px-4 py-6 text-ink-2">{t('none')}</p>;
  return (
    <div className="grid grid-cols-2 gap-px bg-line-soft xl:grid-cols-4">
      {shown.map(({ figure, rows }) => (
        <Chart key={figure} figure={figure} rows={rows} history={own} names={names} changes={changes} />
      ))}
    </div>
  );
}

function Chart({
  figure,
  rows,
  history,
  names,
  changes,
}: {
  figure: Figure;
  rows: SeriesRow[];
  history: BackendHistory;
  /** Of the servers, for the tip. */
  names: readonly string[];
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
  const told = rows.some((row) => replicas.some((_, server) => row[`s${server}`] != null));
  // One that was never reached has said nothing about what it tells.
  const tellsNothing =
    replicas.some(({ points }) => points.some(({ state }) => state === 'healthy')) &&
    replicas.every(({ points }) => points.every(({ figures }) => figures === null));
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
          <LineChart data={rows} margin={{ top: 6, right: 2, bottom: 0, left: 2 }} title={t(`figure.${figure}`)}>
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
                const version = versionAtMs(changes, row.atMs + history.stepMs / 2);
                return (
                  <div className="max-w-72 rounded border border-line bg-raised px-2 py-1 text-xs text-ink shadow-raised">
                    <p className="flex gap-2">
                      {clock(row.atMs)}
                      {version === null ? null : <span className="foreign-line text-ink-2">{version}</span>}
                    </p>
                    {replicas.map(({ url }, server) => (
                      <p key={url} className="flex items-center gap-1.5">
                        {replicas.length > 1 ? <ServerStroke server={server} /> : null}
                        <span className="min-w-8 shrink-0 text-right font-semibold tabular-nums">
                          {write(figure, row[`s${server}`])}
                        </span>
                        {replicas.length > 1 ? (
                          <span className="foreign-line font-mono text-ink-2 max-sm:hidden">{names[server]}</span>
                        ) : null}
                      </p>
                    ))}
                  </div>
                );
              }}
            />
            {changes.map(({ atMs, version }) => (
              <ReferenceLine key={version} x={atMs} stroke="var(--line-field)" strokeDasharray="2 2" />
            ))}
            {replicas.map(({ url }, server) => (
              <Line
                key={url}
                dataKey={`s${server}`}
                dot={false}
                strokeWidth={1.5}
                isAnimationActive={false}
                {...strokeOf(server)}
              />
            ))}
            {lonePoints(rows, replicas.length).map(({ atMs, server, value }) => (
              <ReferenceDot
                key={`${server} ${atMs}`}
                x={atMs}
                y={value}
                r={1.5}
                fill={strokeOf(server).stroke}
                stroke="none"
              />
            ))}
          </LineChart>
        </ResponsiveContainer>
      ) : (
        <p className="flex h-24 items-center text-sm text-ink-3">{t(tellsNothing ? 'untold' : 'noReading')}</p>
      )}
    </figure>
  );
}
