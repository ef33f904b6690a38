'use client';
import { useTranslations } from 'next-intl';
import { type KeyboardEvent, type PointerEvent, type Ref, useEffect, useImperativeHandle, useRef } from 'react';
import { type Surface, useCanvas } from '@/components/charts/use-canvas';
import type { WireTokens } from '@/server/core/tokens/wire';
import type { SegmentKind } from '@/server/core/vocabulary';
import type { ChannelView } from './channels';
import { moved, moveOfKey } from './cursor';
import type { Matches } from './find';
import type { TokenLayout } from './layout';
import { Minimap } from './minimap-strip';
import { type Geometry, paintTokens, type StepHead } from './paint';
import { RowReader } from './row-cells';
import { scrollMap } from './scroll-map';
import { visibleText } from './token-text';
import { useLayoutInSlices } from './use-layout';

const ROW_HEIGHT = 22;
const NARROW = 560;
const MINIMAP = 18;
const READ_ALOUD_CHARACTERS = 4000;

export interface TokenCanvasHandle {
  /** Brings a token into view; one that is not laid out yet, as soon as it is. */
  reveal(token: number): void;
  focus(): void;
}

export interface TokenCanvasProps {
  tokens: WireTokens;
  view: ChannelView;
  selected: number | null;
  matches: Matches;
  currentMatch: number;
  /** What a step's header says. */
  stepHead: (step: number) => StepHead | null;
  /** Read to screen readers when the cursor moves. */
  announcement: string;
  /** The sequence still grows: stay at its end when the reader is there. */
  live: boolean;
  onSelect: (token: number) => void;
  onHover: (token: number | null) => void;
  onFind: () => void;
  ref?: Ref<TokenCanvasHandle>;
}

/** Tokens as text on a canvas over a native scroll container; cells are coloured by `view`. */
export function TokenCanvas(props: TokenCanvasProps) {
  const { tokens, view, selected, matches, announcement } = props;
  const t = useTranslations('trajectory');
  const latest = useRef(props);
  latest.current = props;
  const scroller = useRef<HTMLDivElement | null>(null);
  const spacer = useRef<HTMLDivElement | null>(null);
  const spoken = useRef<HTMLParagraphElement | null>(null);
  const speakTimer = useRef(0);
  const reader = useRef(new RowReader());
  const geometry = useRef<Geometry | null>(null);
  const hovered = useRef<number | null>(null);
  const range = useRef<{ anchor: number; from: number; to: number } | null>(null);
  const dragging = useRef(false);
  const touched = useRef(false);
  // Where to go once the layout has reached it: a token, at so many pixels from the top (null: only into view).
  const pending = useRef<{ token: number; offset: number | null } | null>(null);
  const followEnd = useRef(false);
  const minimapChanged = useRef<(layout: TokenLayout, total: number, top: number, height: number) => void>(() => {});

  const layouts = useLayoutInSlices((layout) => {
    fitHeight(layout);
    settle(layout);
    invalidate();
  });

  const total = (layout: TokenLayout) => layout.estimatedHeight + ROW_HEIGHT;
  const map = (layout: TokenLayout) => scrollMap(total(layout), scroller.current?.clientHeight ?? 0);
  const contentTop = (layout: TokenLayout) => map(layout).toContent(scroller.current?.scrollTop ?? 0);

  function fitHeight(layout: TokenLayout): void {
    if (spacer.current) spacer.current.style.height = `${map(layout).elementHeight}px`;
  }

  function scrollTo(layout: TokenLayout, y: number): void {
    if (scroller.current) scroller.current.scrollTop = map(layout).toScroll(y);
  }

  /** Follows up what had to wait for the layout. */
  function settle(layout: TokenLayout): void {
    const want = pending.current;
    if (want && (layout.done > want.token || layout.finished)) {
      pending.current = null;
      const y = layout.yOfRow(layout.rowOfToken(Math.min(want.token, layout.length - 1)));
      const height = scroller.current?.clientHeight ?? 0;
      if (want.offset !== null) scrollTo(layout, y - want.offset);
      else {
        const top = contentTop(layout);
        if (y < top + 24 || y > top + height - 2 * ROW_HEIGHT) scrollTo(layout, y - height / 3);
      }
    } else if (followEnd.current && layout.finished) scrollTo(layout, layout.height);
  }

  function paint({ context, width, height, theme }: Surface): void {
    const { tokens, view, selected, matches, currentMatch, stepHead } = latest.current;
    const narrow = width < NARROW;
    const fontSize = narrow ? 12 : 12.5;
    context.font = `${fontSize}px ${theme.mono}`;
    const cellWidth = context.measureText('0'.repeat(64)).width / 64;
    const gutter = narrow ? 0 : 96;
    const next: Geometry = { textLeft: gutter + (narrow ? 14 : 12), gutter, cellWidth, fontSize };
    const columns = Math.max(8, Math.floor((width - next.textLeft - MINIMAP - 6) / cellWidth) - 1);
    const old = layouts.current();
    if (!old || old.tokens !== tokens || old.metrics.columns !== columns || geometry.current?.gutter !== gutter) {
      if (old && old.rowCount > 0 && !pending.current) keepPlace(old, height);
      geometry.current = next;
      layouts.start(tokens, { columns, rowHeight: ROW_HEIGHT, blockGap: narrow ? 20 : 8, stepGap: narrow ? 44 : 26 });
    }
    geometry.current = next;
    const layout = layouts.current();
    if (!layout) return;
    const top = contentTop(layout);
    paintTokens(
      context,
      {
        layout,
        view,
        geometry: next,
        theme,
        reader: reader.current,
        stepHead,
        segmentLabel: (kind: SegmentKind) => t(`segment.${kind}`),
        marks: { selected, hovered: hovered.current, range: range.current, matches, currentMatch },
      },
      top,
      width - MINIMAP,
      height,
    );
    minimapChanged.current(layout, total(layout), top, height);
    speakSoon(layout, top, height);
  }

  /** New width or new tokens: the token at the top stays there; who reads the end of a growing text stays at it. */
  function keepPlace(old: TokenLayout, height: number): void {
    const top = contentTop(old);
    followEnd.current = latest.current.live && top + height >= old.height - 2 * ROW_HEIGHT && old.height > height;
    if (top <= 0 || followEnd.current) return;
    const row = old.rowAt(top);
    pending.current = { token: old.rowToken[row] as number, offset: old.yOfRow(row) - top };
  }

  /** The visible text, for screen readers, once scrolling has come to rest. */
  function speakSoon(layout: TokenLayout, top: number, height: number): void {
    window.clearTimeout(speakTimer.current);
    speakTimer.current = window.setTimeout(() => {
      if (!spoken.current || layout.rowCount === 0) return;
      const from = layout.rowByte[layout.rowAt(top)] as number;
      const to = layout.rowEnd(layout.rowAt(top + height)).byte;
      spoken.current.textContent = visibleText(layout.tokens.bytes, from, Math.min(to, from + READ_ALOUD_CHARACTERS));
    }, 350);
  }

  const { canvasRef, invalidate } = useCanvas(paint);

  useEffect(() => () => window.clearTimeout(speakTimer.current), []);

  function reveal(token: number): void {
    followEnd.current = false;
    pending.current = { token, offset: null };
    const layout = layouts.current();
    if (layout) settle(layout);
    invalidate();
  }
  useImperativeHandle(props.ref, () => ({ reveal, focus: () => scroller.current?.focus({ preventScroll: true }) }));

  function tokenAt(event: { clientX: number; clientY: number }): number | null {
    const layout = layouts.current();
    const place = geometry.current;
    if (!layout || !place || !scroller.current || layout.rowCount === 0) return null;
    const box = scroller.current.getBoundingClientRect();
    const y = contentTop(layout) + event.clientY - box.top;
    const row = layout.rowAt(y);
    const rowTop = layout.yOfRow(row);
    if (y < rowTop || y >= rowTop + ROW_HEIGHT) return null;
    const cells = reader.current.read(layout, row);
    const cell = cells.cellAt((event.clientX - box.left - place.textLeft) / place.cellWidth);
    return cell < 0 ? null : (cells.cellToken[cell] as number);
  }

  function hover(token: number | null): void {
    if (token === hovered.current) return;
    hovered.current = token;
    latest.current.onHover(token);
    invalidate();
  }

  function extendRange(token: number, anchor: number): void {
    range.current = { anchor, from: Math.min(anchor, token), to: Math.max(anchor, token) };
    invalidate();
  }

  function onPointerDown(event: PointerEvent): void {
    // A finger that comes down may be about to scroll: only its tap (the click) chooses.
    touched.current = event.pointerType === 'touch';
    if (touched.current) return;
    const token = event.button === 0 ? tokenAt(event) : null;
    if (token === null) return;
    if (event.shiftKey && selected !== null) extendRange(token, range.current?.anchor ?? selected);
    else {
      range.current = null;
      dragging.current = event.pointerType === 'mouse';
    }
    latest.current.onSelect(token);
  }

  function onPointerMove(event: PointerEvent): void {
    const token = tokenAt(event);
    if (dragging.current && event.buttons === 1 && token !== null && selected !== null) {
      if (range.current || token !== selected) extendRange(token, range.current?.anchor ?? selected);
    }
    if (event.pointerType !== 'touch') hover(token);
  }

  function onKeyDown(event: KeyboardEvent): void {
    const layout = layouts.current();
    const control = event.ctrlKey || event.metaKey;
    if (event.altKey || !layout) return;
    if ((event.key === '/' && !control) || (event.key === 'f' && control)) {
      event.preventDefault();
      latest.current.onFind();
      return;
    }
    if (event.key === 'c' && control) {
      const from = range.current?.from ?? selected;
      const to = range.current?.to ?? selected;
      if (from === null || to === null) return;
      event.preventDefault();
      const bytes = tokens.bytes.subarray(layout.byteStart(from), tokens.byteEnds[to]);
      void navigator.clipboard?.writeText(new TextDecoder().decode(bytes));
      return;
    }
    const move = moveOfKey(event.key, control);
    if (!move || layout.length === 0 || (control && move !== 'first' && move !== 'last')) return;
    event.preventDefault();
    event.stopPropagation();
    const pageRows = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / ROW_HEIGHT) - 2);
    const from = selected ?? (layout.rowToken[layout.rowAt(contentTop(layout))] as number);
    const token = selected === null ? from : moved(layout, reader.current, from, move, pageRows);
    if (event.shiftKey && move !== 'nextStep' && move !== 'previousStep')
      extendRange(token, range.current?.anchor ?? from);
    else range.current = null;
    latest.current.onSelect(token);
    reveal(token);
  }

  return (
    <div className="relative h-full min-h-0 min-w-0">
      {/* Under the scroll container, which has no picture of its own: the browser scrolls, the canvas follows. */}
      <canvas ref={canvasRef} className="absolute inset-0 size-full" data-token-canvas="" />
      <div
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the token map takes the keyboard like a text field
        tabIndex={0}
        role="application"
        aria-label={t('canvas.label')}
        aria-describedby="token-keys"
        className="absolute inset-0 overflow-x-hidden overflow-y-auto focus-visible:-outline-offset-2"
        style={{ scrollbarWidth: 'none' }}
        data-token-scroller=""
        onScroll={() => {
          const layout = layouts.current();
          if (
            layout &&
            followEnd.current &&
            contentTop(layout) + (scroller.current?.clientHeight ?? 0) < layout.height - 60
          )
            followEnd.current = false;
          invalidate();
        }}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onClick={(event) => {
          const token = touched.current ? tokenAt(event) : null;
          if (token !== null) latest.current.onSelect(token);
        }}
        onPointerUp={() => {
          dragging.current = false;
        }}
        onPointerLeave={() => hover(null)}
        onKeyDown={onKeyDown}
      >
        <div ref={spacer} />
      </div>
      <Minimap
        width={MINIMAP}
        view={view}
        matches={matches}
        connect={(changed) => {
          minimapChanged.current = changed;
        }}
        onJump={(share) => {
          const layout = layouts.current();
          if (layout) scrollTo(layout, share * total(layout) - (scroller.current?.clientHeight ?? 0) / 2);
        }}
      />
      <p id="token-keys" className="sr-only">
        {t('canvas.keys')}
      </p>
      <p aria-live="polite" className="sr-only" data-token-announcement="">
        {announcement}
      </p>
      <p ref={spoken} className="sr-only" data-visible-text="" />
    </div>
  );
}
