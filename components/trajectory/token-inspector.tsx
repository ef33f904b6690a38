'use client';
import { useTranslations } from 'next-intl';
import type { ReactNode } from 'react';
import { EndLine } from '@/components/ui/end-line';
import { ABSENT, count, decimal, signed } from '@/components/ui/numbers';
import { PanelHeader } from '@/components/ui/panel';
import { alternativesSource } from '@/server/core/tokens/alternatives-source';
import type { ScoreSource, WeightSpan } from '@/server/core/tokens/chunk';
import type { WireTokens } from '@/server/core/tokens/wire';
import { DEFAULT_LOSS_OPTIONS } from '@/server/core/training/loss';
import type { LogprobKind } from '@/server/core/vocabulary';
import { SEGMENT_KINDS } from '@/server/core/vocabulary';
import { decodeAt } from './characters';
import { TokenAlternatives } from './token-alternatives';
import { exactFloat32, numbersAt, probabilityText } from './token-numbers';
import { hexBytes, visibleText } from './token-text';

/** Everything known of one token; each number exact on hover. */
export function TokenInspector({
  tokens,
  position,
  weights,
  advantages,
  member,
  logprobKind,
  approximate,
  trajectoryId,
  policyScoredBy,
  refScoredBy,
}: {
  tokens: WireTokens;
  position: number;
  weights: readonly WeightSpan[];
  advantages: readonly (number | null)[] | null;
  member: number;
  logprobKind: LogprobKind;
  approximate: boolean;
  trajectoryId: string;
  policyScoredBy: ScoreSource | null;
  refScoredBy: ScoreSource | null;
}) {
  const t = useTranslations('trajectory');
  const start = position === 0 ? 0 : (tokens.byteEnds[position - 1] as number);
  const end = tokens.byteEnds[position] as number;
  const numbers = numbersAt(tokens, position, advantages, weights);
  const step = tokens.stepIndex[position] as number;
  const sampled = tokens.mask[position] === 1;
  const segment = t(`segment.${SEGMENT_KINDS[tokens.segment[position] as number] ?? 'template'}`);
  const shared = sharedCharacter(tokens, position);
  return (
    <section aria-label={t('inspector')} data-token-inspector="">
      <PanelHeader
        title={t('tokenAt', { position: count(position) })}
        aside={step < 0 ? segment : `${t('stepAt', { step })} · ${segment}`}
      />
      <dl className="grid grid-cols-[minmax(6.5rem,auto)_1fr] gap-x-3 gap-y-1 px-4 py-2.5 text-sm">
        <Fact name={t('fact.text')}>
          <span className="foreign-text rounded-xs bg-panel px-1 font-mono" data-token-text="">
            {start === end ? t('fact.noBytes') : visibleText(tokens.bytes, start, end)}
          </span>
        </Fact>
        {shared ? (
          <Fact name={t('fact.shares')}>
            <span className="font-mono">{shared.character}</span>{' '}
            <span className="text-ink-2">{t('fact.sharesWith', { from: shared.from, to: shared.to })}</span>
          </Fact>
        ) : null}
        <Fact name={t('fact.id')}>
          <span className="font-mono">{tokens.ids[position]}</span>
        </Fact>
        <Fact name={t('fact.bytes')}>
          <span className="font-mono" title={hexBytes(tokens.bytes, start, end, Number.POSITIVE_INFINITY)}>
            {start === end ? ABSENT : hexBytes(tokens.bytes, start, end)}
          </span>
        </Fact>
        <Fact name={t('fact.mask')} strong>
          {sampled ? t('fact.maskOn') : t('fact.maskOff')}
        </Fact>
        <Fact
          name={t('fact.logprob')}
          strong
          title={numbers.logprob === null ? undefined : exactFloat32(numbers.logprob)}
        >
          {decimal(numbers.logprob, 6)}
          {numbers.logprob !== null && logprobKind !== 'raw' ? <Aside>{t(`logprobKind.${logprobKind}`)}</Aside> : null}
        </Fact>
        <Fact
          name={t('fact.probability')}
          title={numbers.probability === null ? undefined : String(numbers.probability)}
        >
          {probabilityText(numbers.probability)}
        </Fact>
        <Fact
          name={t('fact.policy')}
          title={numbers.policy === null ? t('missing.noPolicyLogprobs') : exactFloat32(numbers.policy)}
        >
          {decimal(numbers.policy, 6)}
          {numbers.policy !== null ? <By source={policyScoredBy} /> : null}
        </Fact>
        <Fact
          name={t('fact.ref')}
          title={numbers.ref === null ? t('missing.noRefLogprobs') : exactFloat32(numbers.ref)}
        >
          {decimal(numbers.ref, 6)}
          {numbers.ref !== null ? <By source={refScoredBy} /> : null}
        </Fact>
        <Fact name={t('fact.ratio')} title={exact(numbers.ratio) ?? t('fact.needsBoth')}>
          {decimal(numbers.ratio, 4)}
        </Fact>
        <Fact name={t('fact.kl')} title={exact(numbers.kl) ?? t('fact.needsBoth')}>
          {decimal(numbers.kl, 6)}
        </Fact>
        <Fact
          strong
          name={
            <>
              {t('fact.advantage')} A
              <sub>
                {member},{step < 0 ? ABSENT : step}
              </sub>
            </>
          }
          title={exact(numbers.advantage)}
          tone={
            numbers.advantage === null || numbers.advantage === 0
              ? undefined
              : numbers.advantage > 0
                ? 'above'
                : 'below'
          }
        >
          {signed(numbers.advantage, 4)}
        </Fact>
        <Fact
          name={t('fact.lossTerm')}
          title={
            numbers.lossTerm === null
              ? t('fact.lossNeeds')
              : `${exact(numbers.lossTerm)} · ${t('fact.lossFormula', { clip: DEFAULT_LOSS_OPTIONS.clipLow })}`
          }
        >
          {signed(numbers.lossTerm, 4)}
          {numbers.clipped ? <Aside>{t('fact.clipped')}</Aside> : null}
        </Fact>
        <Fact name={t('fact.entropy')} title={exact(numbers.entropy) ?? t('missing.noEntropy')}>
          {decimal(numbers.entropy, 4)}
        </Fact>
        <Fact name={t('fact.version')}>
          <span className="foreign-text">{numbers.version ?? ABSENT}</span>
        </Fact>
      </dl>
      {tokens.alternatives ? (
        <TokenAlternatives
          tokens={tokens}
          position={position}
          trajectoryId={trajectoryId}
          scoredBy={alternativesSource([policyScoredBy, refScoredBy])}
        />
      ) : null}
      {approximate ? <p className="border-l-2 border-warn bg-panel px-3 py-1.5 text-xs">{t('approximate')}</p> : null}
    </section>
  );
}

function Fact({
  name,
  title,
  strong = false,
  tone,
  children,
}: {
  name: ReactNode;
  title?: string;
  strong?: boolean;
  tone?: 'above' | 'below';
  children: ReactNode;
}) {
  const colour = tone === 'above' ? 'text-positive-ink' : tone === 'below' ? 'text-negative-ink' : '';
  return (
    <>
      <dt className="text-ink-2">{name}</dt>
      <dd title={title} className={`min-w-0 ${strong ? 'font-semibold' : ''} ${colour}`}>
        {children}
      </dd>
    </>
  );
}

/** Which weights gave a number. */
function By({ source }: { source: ScoreSource | null }) {
  if (!source) return null;
  return (
    <>
      {' '}
      <span className="flex min-w-0 text-ink-3" title={`${source.backend} · ${source.weightVersion}`}>
        <span className="foreign-line max-w-1/2 shrink-0">{source.backend}</span>
        <span className="whitespace-pre"> · </span>
        <EndLine text={source.weightVersion} className="min-w-0" />
      </span>
    </>
  );
}

function Aside({ children }: { children: ReactNode }) {
  return <span className="ml-1.5 font-normal text-warn">{children}</span>;
}

function exact(value: number | null): string | undefined {
  return value === null ? undefined : String(value).replace('-', '−');
}

/** The character that lies partly in this token and partly in its neighbours, if there is one. */
function sharedCharacter(tokens: WireTokens, position: number): { character: string; from: number; to: number } | null {
  const { bytes, byteEnds } = tokens;
  const startOf = (token: number) => (token === 0 ? 0 : (byteEnds[token - 1] as number));
  const start = startOf(position);
  const end = byteEnds[position] as number;
  for (let at = Math.max(0, start - 3); at < end; at++) {
    const packed = decodeAt(bytes, at);
    const size = packed & 7;
    const crosses = (at < start && at + size > start) || (at + size > end && at < end);
    if (size < 2 || !crosses) continue;
    let from = position;
    while (from > 0 && startOf(from) > at) from--;
    let to = position;
    while (to + 1 < byteEnds.length && (byteEnds[to] as number) < at + size) to++;
    return { character: String.fromCodePoint(packed >>> 3), from, to };
  }
  return null;
}
