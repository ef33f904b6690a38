/** The token view alone on a page, for measuring and for looking at: bundled by token-view.bench.ts, never served by the product. */
import { NextIntlClientProvider } from 'next-intl';
import { useEffect, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { type Channel, isChannel } from '../components/trajectory/channels';
import { TokenInspector } from '../components/trajectory/token-inspector';
import { TokenView, type TokenViewHandle } from '../components/trajectory/token-view';
import messages from '../messages/en.json';
import { decodeTokens, type WireTokens } from '../server/core/tokens/wire';

declare global {
  interface Window {
    measured: { askedAt: number; dataAt: number; longestTaskMs: number };
    firstPaint: () => Promise<number>;
    scrollFast: () => Promise<{ framesPerSecond: number; worstFrameMs: number }>;
  }
}

window.measured = { askedAt: 0, dataAt: 0, longestTaskMs: 0 };
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    if (window.measured.dataAt > 0 && entry.startTime + entry.duration > window.measured.dataAt)
      window.measured.longestTaskMs = Math.max(window.measured.longestTaskMs, entry.duration);
}).observe({ entryTypes: ['longtask'] });

/** Milliseconds from asking for the data until the canvas shows something that is not its background. */
window.firstPaint = () =>
  new Promise((resolve) => {
    const look = () => {
      const canvas = document.querySelector<HTMLCanvasElement>('[data-token-canvas]');
      const context = canvas?.getContext('2d');
      if (canvas && context && canvas.width > 0) {
        const { data } = context.getImageData(0, 0, canvas.width, 160);
        for (let i = 4; i < data.length; i += 4)
          if (data[i] !== data[0]) return resolve(performance.now() - window.measured.askedAt);
      }
      requestAnimationFrame(look);
    };
    look();
  });

/** Scrolls a third of a window a frame for two seconds. */
window.scrollFast = () =>
  new Promise((resolve) => {
    const scroller = document.querySelector('[data-token-scroller]') as HTMLElement;
    const begun = performance.now();
    let last = begun;
    let frames = 0;
    let worst = 0;
    const step = (now: number) => {
      if (frames > 0) worst = Math.max(worst, now - last);
      last = now;
      frames++;
      scroller.scrollTop += scroller.clientHeight / 3;
      if (scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 2) scroller.scrollTop = 0;
      if (now - begun < 2000) requestAnimationFrame(step);
      else
        resolve({
          framesPerSecond: Math.round((frames / (now - begun)) * 10_000) / 10,
          worstFrameMs: Math.round(worst),
        });
    };
    requestAnimationFrame(step);
  });

const query = new URLSearchParams(location.search);

function Page() {
  const asked = query.get('color');
  const [channel, setChannel] = useState<Channel>(isChannel(asked) ? asked : 'advantage');
  const [tokens, setTokens] = useState<WireTokens | null>(null);
  const [made, setMade] = useState<{ advantages: number[]; stepRewards: number[] } | null>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const canvas = useRef<TokenViewHandle | null>(null);
  useEffect(() => {
    const load = async () => {
      const steps = await (await fetch(`/steps${location.search}`)).json();
      window.measured.askedAt = performance.now();
      const wire = await (await fetch(`/tokens${location.search}`)).arrayBuffer();
      window.measured.dataAt = performance.now();
      setMade(steps);
      setTokens(decodeTokens(wire));
    };
    void load();
  }, []);
  if (!tokens || !made) return null;
  const position = hovered ?? selected;
  const narrow = window.innerWidth < 640;
  const weights = [
    { version: 'v36', start: 0, end: Math.floor(tokens.ids.length / 2) },
    { version: 'v37', start: Math.floor(tokens.ids.length / 2), end: tokens.ids.length },
  ];
  return (
    <div
      style={{
        display: 'grid',
        height: '100vh',
        gridTemplateColumns: narrow ? 'minmax(0,1fr)' : 'minmax(0,1fr) 17rem',
      }}
    >
      <TokenView
        ref={canvas}
        tokens={tokens}
        weights={weights}
        advantages={made.advantages}
        channel={channel}
        selected={selected}
        onChannel={setChannel}
        onSelect={setSelected}
        onHover={setHovered}
        stepHead={(step) => ({
          title: `Step ${step} · probe`,
          figures: `r ${(made.stepRewards[step] ?? 0).toFixed(2)} · A ${(made.advantages[step] ?? 0).toFixed(2)}`,
          advantage: made.advantages[step] ?? null,
        })}
      />
      <div style={{ borderLeft: '1px solid var(--line)', display: narrow ? 'none' : 'block', minHeight: 0 }}>
        {position === null ? null : (
          <TokenInspector
            tokens={tokens}
            position={position}
            weights={weights}
            advantages={made.advantages}
            member={3}
            logprobKind="raw"
            approximate={false}
            trajectoryId="trj_view"
            policyScoredBy={null}
            refScoredBy={null}
          />
        )}
      </div>
    </div>
  );
}

document.documentElement.dataset.theme = query.get('theme') ?? 'light';
createRoot(document.getElementById('root') as HTMLElement).render(
  <NextIntlClientProvider locale="en" messages={messages} timeZone="UTC">
    <Page />
  </NextIntlClientProvider>,
);
