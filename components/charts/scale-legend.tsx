'use client';
import { useTranslations } from 'next-intl';
import { count } from '@/components/ui/numbers';
import { categoryColour, ramp } from './palette';
import { RAMP_STEPS, type Scale } from './scale';
import { type Surface, useCanvas } from './use-canvas';

/** The ramp with its ends written out, and a sentence when it is clipped: "clipped at p99: ±2.1 · 3 beyond". */
export function ScaleLegend({
  scale,
  low,
  middle,
  high,
  bound,
}: {
  scale: Scale;
  low: string;
  /** Under the middle of a diverging ramp; null writes nothing. */
  middle?: string | null;
  high: string;
  /** The clip in words of its unit, as `±2.1`. */
  bound: string;
}) {
  const t = useTranslations('charts');
  const { canvasRef } = useCanvas(({ context, width, height, theme }: Surface) => {
    const colours = ramp(theme.name, scale.kind);
    for (let x = 0; x < width; x++) {
      context.fillStyle = colours[Math.round((x / Math.max(1, width - 1)) * RAMP_STEPS)] as string;
      context.fillRect(x, 0, 1.5, height);
    }
    if (middle) {
      context.fillStyle = theme.ink3;
      context.fillRect(Math.floor(width / 2), 0, 1, height);
    }
  });
  const note =
    scale.clipped > 0
      ? t('clipped', { percentile: `p${Math.round(scale.percentile * 100)}`, bound, count: count(scale.clipped) })
      : null;
  return (
    <div
      className="flex flex-wrap items-center gap-x-1.5 gap-y-0.5 text-xs whitespace-nowrap text-ink-2"
      data-legend=""
    >
      <span>{low}</span>
      <canvas ref={canvasRef} className="h-2.5 w-24 rounded-xs" />
      <span>{high}</span>
      {note ? <span className="text-warn">· {note}</span> : null}
    </div>
  );
}

/** A small square in one of the data colours. */
export function Swatch({ kind, index = 0 }: { kind: 'hatched' | 'category'; index?: number }) {
  const { canvasRef } = useCanvas(({ context, width, height, theme }: Surface) => {
    context.fillStyle = categoryColour(theme.name, index);
    context.fillRect(0, 0, width, height);
  });
  if (kind === 'hatched')
    return <span aria-hidden="true" className="hatched inline-block h-3 w-4 border border-line-soft" />;
  return <canvas ref={canvasRef} className="inline-block h-3 w-4 rounded-xs" />;
}
