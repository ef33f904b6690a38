'use client';
import { useTranslations } from 'next-intl';
import { type Ref, useCallback, useImperativeHandle, useMemo, useRef, useState } from 'react';
import { count, signed } from '@/components/ui/numbers';
import { Segmented } from '@/components/ui/segmented';
import type { WeightSpan } from '@/server/core/tokens/chunk';
import type { WireTokens } from '@/server/core/tokens/wire';
import { SEGMENT_KINDS } from '@/server/core/vocabulary';
import { CHANNELS, type Channel, type ChannelSource, channelView, missingFor } from './channels';
import { findText, NO_MATCHES, tokenOfByte } from './find';
import { FindBox } from './find-box';
import type { StepHead } from './paint';
import { TokenCanvas, type TokenCanvasHandle } from './token-canvas';
import { TokenLegend } from './token-legend';
import { exactFloat32, numbersAt } from './token-numbers';
import { visibleText } from './token-text';

export interface TokenViewHandle extends TokenCanvasHandle {
  openFind(): void;
}

export interface TokenViewProps {
  tokens: WireTokens;
  weights: readonly WeightSpan[];
  /** By step; null until the group is complete. */
  advantages: readonly (number | null)[] | null;
  /** Advantages of all siblings: they share one scale. */
  groupAdvantages?: readonly number[];
  channel: Channel;
  selected: number | null;
  stepHead: (step: number) => StepHead | null;
  live?: boolean;
  onChannel: (channel: Channel) => void;
  onSelect: (token: number) => void;
  onHover: (token: number | null) => void;
  ref?: Ref<TokenViewHandle>;
}

/** The tokens of one sequence with what colours them, a legend and a find box. */
export function TokenView(props: TokenViewProps) {
  const { tokens, weights, advantages, groupAdvantages, selected, onSelect } = props;
  const t = useTranslations('trajectory');
  const canvas = useRef<TokenCanvasHandle | null>(null);
  const [finding, setFinding] = useState(false);
  const [needle, setNeedle] = useState('');
  const [current, setCurrent] = useState(-1);

  const source: ChannelSource = useMemo(
    () => ({ tokens, advantages, groupAdvantages, weights }),
    [tokens, advantages, groupAdvantages, weights],
  );
  const missing = useMemo(() => new Map(CHANNELS.map((channel) => [channel, missingFor(channel, source)])), [source]);
  const channel = missing.get(props.channel) ? 'mask' : props.channel;
  const view = useMemo(() => channelView(channel, source), [channel, source]);
  const matches = useMemo(
    () => (finding && needle ? findText(tokens.bytes, needle) : NO_MATCHES),
    [finding, needle, tokens],
  );

  useImperativeHandle(props.ref, () => ({
    reveal: (token) => canvas.current?.reveal(token),
    focus: () => canvas.current?.focus(),
    openFind: () => setFinding(true),
  }));

  const step = useCallback(
    (direction: 1 | -1) => {
      const total = matches.starts.length;
      if (total === 0) return;
      // The first jump goes to the match at or after the cursor, so that find continues from where one reads.
      const cursorByte = selected === null || selected === 0 ? 0 : (tokens.byteEnds[selected - 1] ?? 0);
      const at = current < 0 ? matches.starts.findIndex((start) => start >= cursorByte) : current + direction;
      const next = current < 0 ? Math.max(0, at) : (at + total) % total;
      setCurrent(next);
      const token = tokenOfByte(tokens.byteEnds, matches.starts[next] as number);
      onSelect(token);
      canvas.current?.reveal(token);
    },
    [matches, current, selected, tokens, onSelect],
  );

  const reasons = CHANNELS.map((name) => missing.get(name)).filter((reason) => reason !== null && reason !== undefined);
  return (
    <section className="flex h-full min-h-0 min-w-0 flex-col" aria-label={t('tokens')}>
      <div className="flex min-h-9 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line-soft px-3 py-1.5">
        <Segmented
          label={t('colourBy')}
          value={channel}
          options={CHANNELS.map((name) => {
            const reason = missing.get(name);
            return {
              value: name,
              label: t(`channel.${name}`),
              title: reason ? t(`missing.${reason}`) : t(`channelTitle.${name}`),
              disabled: Boolean(reason),
            };
          })}
          onChange={props.onChannel}
        />
        {reasons.length > 0 ? (
          <details className="relative text-xs text-ink-2">
            <summary
              aria-label={t('whyMissing')}
              title={t('whyMissing')}
              className="list-none rounded-full border border-line px-1.5 hover:bg-panel max-sm:px-3 max-sm:py-1.5 [&::-webkit-details-marker]:hidden"
            >
              ?
            </summary>
            <ul className="absolute top-5 left-0 z-20 w-72 space-y-1 rounded border border-line bg-raised p-2 shadow-raised">
              {[...new Set(reasons)].map((reason) => (
                <li key={reason}>{t(`missing.${reason}`)}</li>
              ))}
            </ul>
          </details>
        ) : null}
        <div className="ml-auto flex min-w-0 items-center gap-3">
          <TokenLegend view={view} weights={weights} />
          <button
            type="button"
            onClick={() => setFinding(true)}
            title={t('find.open')}
            aria-label={t('find.open')}
            className="shrink-0 rounded border border-line px-2 py-0.5 text-sm whitespace-nowrap text-ink-2 hover:bg-panel max-sm:py-1.5"
          >
            {t('find.button')}
          </button>
        </div>
      </div>
      <div className="relative min-h-0 flex-1">
        {finding ? (
          <FindBox
            text={needle}
            total={matches.starts.length}
            current={current}
            onText={(text) => {
              setNeedle(text);
              setCurrent(-1);
            }}
            onStep={step}
            onClose={() => {
              setFinding(false);
              canvas.current?.focus();
            }}
          />
        ) : null}
        <TokenCanvas
          ref={canvas}
          tokens={tokens}
          view={view}
          selected={selected}
          matches={matches}
          currentMatch={current}
          stepHead={props.stepHead}
          announcement={selected === null || selected >= tokens.ids.length ? '' : sentenceOf(selected)}
          live={props.live ?? false}
          onSelect={onSelect}
          onHover={props.onHover}
          onFind={() => setFinding(true)}
        />
      </div>
    </section>
  );

  function sentenceOf(token: number): string {
    const numbers = numbersAt(tokens, token, advantages, weights);
    const start = token === 0 ? 0 : (tokens.byteEnds[token - 1] as number);
    return t('announce', {
      position: count(token),
      text: visibleText(tokens.bytes, start, tokens.byteEnds[token] as number),
      segment: t(`segment.${SEGMENT_KINDS[tokens.segment[token] as number] ?? 'template'}`),
      step: tokens.stepIndex[token] as number,
      mask: tokens.mask[token] === 1 ? t('legend.sampled') : t('legend.given'),
      logprob: numbers.logprob === null ? '–' : exactFloat32(numbers.logprob),
      advantage: signed(numbers.advantage, 4),
    });
  }
}
