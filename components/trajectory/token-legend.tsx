'use client';
import { useTranslations } from 'next-intl';
import { ScaleLegend, Swatch } from '@/components/charts/scale-legend';
import { EndLine } from '@/components/ui/end-line';
import { decimal, signed } from '@/components/ui/numbers';
import type { WeightSpan } from '@/server/core/tokens/chunk';
import { type ChannelView, versionNumbers } from './channels';

/** What the colours of the chosen channel mean, and whether the scale was clipped. */
export function TokenLegend({ view, weights }: { view: ChannelView; weights: readonly WeightSpan[] }) {
  const t = useTranslations('trajectory');
  if (view.channel === 'mask')
    return (
      <div className="flex items-center gap-3 text-xs text-ink-2">
        <span className="flex items-center gap-1.5 whitespace-nowrap" title={t('legend.sampled')}>
          <Swatch kind="category" /> {t('legend.sampledShort')}
        </span>
        <span className="flex items-center gap-1.5 whitespace-nowrap" title={t('legend.given')}>
          <Swatch kind="hatched" /> {t('legend.givenShort')}
        </span>
      </div>
    );
  if (view.channel === 'version') {
    const numbers = versionNumbers(weights);
    const versions = new Map(weights.map((span, i) => [span.version, numbers[i] ?? 0]));
    return (
      <div className="flex max-w-full items-center gap-3 overflow-x-auto text-xs text-ink-2">
        {[...versions].slice(0, 12).map(([version, number]) => (
          <span key={version} className="flex items-center gap-1.5 whitespace-nowrap">
            <Swatch kind="category" index={number} />
            <EndLine text={version} className="max-w-40" />
          </span>
        ))}
        {versions.size > 12 ? (
          <span className="whitespace-nowrap">{t('legend.moreVersions', { count: versions.size - 12 })}</span>
        ) : null}
      </div>
    );
  }
  const { scale } = view;
  if (!scale) return null;
  const written =
    view.channel === 'ratio'
      ? {
          low: decimal(Math.exp(-scale.limit)),
          middle: '1',
          high: decimal(Math.exp(scale.limit)),
          bound: `×÷${decimal(Math.exp(scale.limit))}`,
        }
      : view.channel === 'advantage'
        ? { low: signed(-scale.limit), middle: '0', high: signed(scale.limit), bound: `±${decimal(scale.limit)}` }
        : view.channel === 'logprob'
          ? { low: '0', middle: null, high: decimal(-scale.limit), bound: decimal(-scale.limit) }
          : { low: '0', middle: null, high: decimal(scale.limit, 4), bound: decimal(scale.limit, 4) };
  return (
    <ScaleLegend scale={scale} low={written.low} middle={written.middle} high={written.high} bound={written.bound} />
  );
}
