'use client';
import { useTranslations } from 'next-intl';
import type { ReactNode } from 'react';
import { EndLine } from '@/components/ui/end-line';
import type { SpreadRow } from './figure-spread';
import { CHOSEN_COLOUR, colourOf, ServerStroke } from './server-stroke';

/** What one moment of a chart says: every server, or of many the lowest, the median, the highest and the chosen one. */
export function FigureTip({
  row,
  names,
  many,
  chosen,
  clock,
  version,
  write,
}: {
  row: SpreadRow;
  /** Of the servers, in their order. */
  names: readonly string[];
  many: boolean;
  /** Place of the chosen server; null for none. */
  chosen: number | null;
  clock: string;
  /** Of the weights then; null where the chart begins with them. */
  version: string | null;
  write: (value: number | null | undefined) => string;
}) {
  const t = useTranslations('backend.charts');
  return (
    <div className="max-w-72 rounded border border-line bg-raised px-2 py-1 text-xs text-ink shadow-raised">
      <p className="flex gap-2">
        {clock}
        {version === null ? null : <EndLine text={version} className="text-ink-2" />}
      </p>
      {many ? (
        <>
          {chosen === null ? null : (
            <Reading
              mark={<ServerStroke colour={CHOSEN_COLOUR} />}
              value={write(row[`s${chosen}`])}
              name={names[chosen]}
            />
          )}
          <Reading mark={t('highest')} value={write(row.range?.[1])} name={names[row.highest ?? -1]} />
          <Reading mark={t('median')} value={write(row.median)} />
          <Reading mark={t('lowest')} value={write(row.range?.[0])} name={names[row.lowest ?? -1]} />
        </>
      ) : (
        names.map((name, server) => (
          <Reading
            key={name}
            mark={names.length > 1 ? <ServerStroke colour={colourOf(server)} /> : null}
            value={write(row[`s${server}`])}
            name={names.length > 1 ? name : undefined}
          />
        ))
      )}
    </div>
  );
}

function Reading({ mark, value, name }: { mark: ReactNode; value: string; name?: string | undefined }) {
  return (
    <p className="flex items-center gap-1.5">
      {typeof mark === 'string' ? <span className="w-14 shrink-0 text-ink-3">{mark}</span> : mark}
      <span className="min-w-8 shrink-0 text-right font-semibold tabular-nums">{value}</span>
      {name === undefined ? null : <span className="foreign-line font-mono text-ink-2 max-sm:hidden">{name}</span>}
    </p>
  );
}
