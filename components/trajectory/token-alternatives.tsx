'use client';
import { useQuery } from '@tanstack/react-query';
import { useTranslations } from 'next-intl';
import { ON_ITS_OWN, useTRPC } from '@/components/trpc';
import { EndLine } from '@/components/ui/end-line';
import { PanelHeader } from '@/components/ui/panel';
import type { ScoreSource } from '@/server/core/tokens/chunk';
import type { WireTokens } from '@/server/core/tokens/wire';
import { alternativesAt, exactFloat32, probabilityText } from './token-numbers';
import { visibleText } from './token-text';

/** What else the scored model would have written here, likeliest first, each as a bar of its probability. */
export function TokenAlternatives({
  tokens,
  position,
  trajectoryId,
  scoredBy,
}: {
  tokens: WireTokens;
  position: number;
  trajectoryId: string;
  /** Which weights they are of; null where that was not kept. */
  scoredBy: ScoreSource | null;
}) {
  const all = useTranslations('trajectory');
  const t = useTranslations('trajectory.alternatives');
  const trpc = useTRPC();
  const shown = alternativesAt(tokens, position);
  const ids = shown.map(({ id }) => id);
  const texts = useQuery(
    trpc.trajectories.tokenTexts.queryOptions(
      { trajectoryId, ids },
      { ...ON_ITS_OWN, enabled: ids.length > 0, staleTime: Number.POSITIVE_INFINITY, retry: false },
    ),
  );
  if (shown.length === 0) return null;
  return (
    <section aria-label={t('title')}>
      <PanelHeader
        title={t('title')}
        aside={
          scoredBy ? (
            <EndLine text={t('by', { backend: scoredBy.backend, version: scoredBy.weightVersion })} />
          ) : undefined
        }
      />
      <ol className="px-4 py-2 text-sm">
        {shown.map(({ id, logprob }, rank) => {
          const bytes = texts.data?.[rank];
          const taken = id === tokens.ids[position];
          const text = bytes ? visibleText(bytes, 0, bytes.length) : null;
          return (
            <li key={id} className="flex items-center gap-2 py-px" title={exactFloat32(logprob)}>
              <span
                className={`foreign-line w-24 shrink-0 font-mono whitespace-pre! ${taken ? 'font-bold' : 'text-ink-2'}`}
                title={text ?? (texts.isPending ? undefined : t('untold'))}
              >
                {/* Blanks are seen by their ground. Its place is kept while the text is on its way. */}
                {text ? (
                  <span className="rounded-xs bg-panel px-1">{text}</span>
                ) : text === '' ? (
                  all('fact.noBytes')
                ) : texts.isPending ? (
                  '\u00a0'
                ) : (
                  `#${id}`
                )}
              </span>
              <span aria-hidden="true" className="h-2 flex-1 bg-line-soft">
                <span
                  className={`block h-full ${taken ? 'bg-ink-2' : 'bg-ink-3'}`}
                  style={{ width: `${100 * Math.exp(logprob)}%` }}
                />
              </span>
              <span className="w-16 text-right tabular-nums">{probabilityText(Math.exp(logprob))}</span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
