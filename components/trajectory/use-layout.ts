'use client';
import { useEffect, useRef } from 'react';
import type { WireTokens } from '@/server/core/tokens/wire';
import { type LayoutMetrics, TokenLayout } from './layout';

/** Tokens placed before the first paint, and a slice's share of a frame. */
const FIRST_TOKENS = 6000;
const SLICE_TOKENS = 3000;
const SLICE_MS = 9;

/**
 * Keeps a layout of `tokens` for the given metrics and finishes it in slices between frames. The hook does not
 * render: `onProgress` is called after the first slice and after every further one.
 */
export function useLayoutInSlices(onProgress: (layout: TokenLayout, fresh: boolean) => void): {
  current: () => TokenLayout | null;
  start: (tokens: WireTokens, metrics: LayoutMetrics) => void;
} {
  const progress = useRef(onProgress);
  progress.current = onProgress;
  const layout = useRef<TokenLayout | null>(null);
  const timer = useRef(0);
  const api = useRef({
    current: () => layout.current,
    start: (tokens: WireTokens, metrics: LayoutMetrics) => {
      cancelAnimationFrame(timer.current);
      const made = new TokenLayout(tokens, metrics);
      made.advance(FIRST_TOKENS);
      layout.current = made;
      progress.current(made, true);
      const slice = () => {
        const until = performance.now() + SLICE_MS;
        while (!made.advance(SLICE_TOKENS) && performance.now() < until);
        progress.current(made, false);
        if (!made.finished) timer.current = requestAnimationFrame(slice);
      };
      if (!made.finished) timer.current = requestAnimationFrame(slice);
    },
  });
  useEffect(() => () => cancelAnimationFrame(timer.current), []);
  return api.current;
}
