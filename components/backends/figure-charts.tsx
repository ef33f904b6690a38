'use client';
import { useLocale, useTranslations } from 'next-intl';
import { CartesianGrid, Line, LineChart, ReferenceLine, ResponsiveContainer, Tooltip, XAxis, YAxis } from 'recharts';
import { ABSENT, decimal, percent } from '@/components/ui/numbers';
import type { BackendHistory } from '@/server/core/views';
import { FIGURES, type Figure, type SeriesRow, seriesOf, versionChanges } from './figure-series';

const COLOURS = ['var(--accent)', 'var(--positive)', 'var(--negative)', 'var(--ok)', 'var(--warn)', 'var(--ink-2)'];
/** Servers beyond the colours are told apart by dashes as well. */
const DASHES = ['', '4 2', '1 2', '6 2 1 2'];

const write = (figure: Figure, value: number | null | undefined): string =>
  value == null
    ? ABSENT
    : figure === 'kv' || figure === 'prefix'
      ? percent(value)
      : decimal(value, figure === 'tpot' ? 1 : 0);

/** Small charts, one a figure, over the same stretch of time; a line a server. New weights are marked. */
export function FigureCharts({ history }: { history: BackendHistory }) {
  const t = useTranslations('backend.charts');
  const changes = versionChanges(history);
  const shown = FIGURES.map((figure) => ({ figure, rows: seriesOf(history, figure) }));
  const stretch = shown[0]?.rows ?? [];
  if (stretch.length < 2) return <p className="px-4 py-6 text-ink-2">{t('none')}</p>;
  return (
    <>
      {history.replicas.length > 1 ? (
        <ul className="flex flex-wrap gap-x-4 gap-y-1 px-4 py-2 text-sm text-ink-2">
          {history.replicas.map(({ url }, server) => (
            <li key={url} className="flex min-w-0 items-center gap-1.5">
              <svg width="18" height="8" aria-hidden="true">
                <line x1="0" x2="18" y1="4" y2="4" strokeWidth="2" {...strokeOf(server)} />
              </svg>
              <span className="foreign-line font-mono">{url}</span>
            </li>
          ))}
        </ul>
      ) : null}
      <div className="grid grid-cols-1 gap-px bg-line-soft sm:grid-cols-2 xl:grid-cols-4">
        {shown.map(({ figure, rows }) => (
          <Chart
            key={figure}
            figure={figure}
            rows={rows}
            servers={history.replicas.map(({ url }) => url)}
            changes={changes}
          />
        ))}
      </div>
    </>
  );
}

function Chart({
  figure,
  rows,
  servers,
  changes,
}: {
  figure: Figure;
  rows: SeriesRow[];
  servers: readonly string[];
  changes: readonly { atMs: number; version: string }[];
}) {
  const t = useTranslations('backend.charts');
  const locale = useLocale();
  const clock = (atMs: number) =>
    new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(atMs);
  const last = rows.at(-1);
  const now = servers.map((_, server) => write(figure, last?.[`s${server}`])).join(' · ');
  const told = rows.some((row) => servers.some((_, server) => row[`s${server}`] != null));
  const share = figure === 'kv' || figure === 'prefix';
  return (
    <figure className="m-0 min-w-0 bg-bg px-4 py-2" aria-label={`${t(`figure.${figure}`)}: ${now}`}>
      <figcaption className="flex items-baseline justify-between gap-2 text-sm">
        <span className="text-ink-2" title={t(`title.${figure}`)}>
          {t(`figure.${figure}`)}
        </span>
        <span className="foreign-line font-semibold tabular-nums">{now}</span>
      </figcaption>
      {told ? (
        <ResponsiveContainer width="100%" height={96}>
          <LineChart data={rows} margin={{ top: 6, right: 2, bottom: 0, left: 2 }} accessibilityLayer={false}>
            <CartesianGrid vertical={false} stroke="var(--line-soft)" />
            <XAxis
              dataKey="atMs"
              type="number"
              domain={['dataMin', 'dataMax']}
              tickFormatter={clock}
              tick={{ fontSize: 10, fill: 'var(--ink-3)' }}
              tickLine={false}
              axisLine={{ stroke: 'var(--line)' }}
              interval="preserveStartEnd"
              minTickGap={80}
              height={16}
            />
            <YAxis hide domain={share ? [0, 1] : [0, 'auto']} />
            <Tooltip
              isAnimationActive={false}
              labelFormatter={(atMs) => clock(Number(atMs))}
              formatter={(value, name) => [write(figure, Number(value)), servers[Number(String(name).slice(1))] ?? '']}
              contentStyle={{
                background: 'var(--raised)',
                border: '1px solid var(--line)',
                borderRadius: 4,
                fontSize: 12,
                padding: '4px 8px',
              }}
              itemStyle={{ color: 'var(--ink-2)', padding: 0 }}
              labelStyle={{ color: 'var(--ink)' }}
            />
            {changes.map(({ atMs, version }) => (
              <ReferenceLine key={version} x={atMs} stroke="var(--ink-3)" strokeDasharray="2 2" />
            ))}
            {servers.map((url, server) => (
              <Line
                key={url}
                dataKey={`s${server}`}
                dot={false}
                strokeWidth={1.5}
                isAnimationActive={false}
                {...strokeOf(server)}
              />
            ))}
          </LineChart>
        </ResponsiveContainer>
      ) : (
        <p className="flex h-24 items-center text-sm text-ink-3">{t('untold')}</p>
      )}
    </figure>
  );
}

function strokeOf(server: number): { stroke: string; strokeDasharray?: string } {
  const dash = DASHES[Math.floor(server / COLOURS.length) % DASHES.length];
  return { stroke: COLOURS[server % COLOURS.length] as string, ...(dash ? { strokeDasharray: dash } : {}) };
}
