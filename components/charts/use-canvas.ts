'use client';
import { useCallback, useEffect, useRef } from 'react';
import { type CanvasTheme, readCanvasTheme, watchTheme } from './canvas-theme';

export interface Surface {
  context: CanvasRenderingContext2D;
  /** CSS pixels; the context is already scaled to the device's. */
  width: number;
  height: number;
  theme: CanvasTheme;
}

/**
 * A canvas that is as sharp as the screen and painted at most once a frame: when `invalidate` is called, on every
 * render of its component, and when size, pixel ratio, theme or fonts change. The element's CSS gives its size.
 */
export function useCanvas(paint: (surface: Surface) => void): {
  canvasRef: (canvas: HTMLCanvasElement | null) => void;
  invalidate: () => void;
} {
  const latest = useRef(paint);
  latest.current = paint;
  const canvas = useRef<HTMLCanvasElement | null>(null);
  const theme = useRef<CanvasTheme | null>(null);
  const frame = useRef(0);
  const stop = useRef<(() => void) | null>(null);

  const draw = useCallback(() => {
    frame.current = 0;
    const element = canvas.current;
    const context = element?.getContext('2d', { alpha: false });
    if (!element || !context) return;
    const { clientWidth: width, clientHeight: height } = element;
    if (width === 0 || height === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const deviceWidth = Math.round(width * ratio);
    const deviceHeight = Math.round(height * ratio);
    if (element.width !== deviceWidth || element.height !== deviceHeight) {
      element.width = deviceWidth;
      element.height = deviceHeight;
    }
    theme.current ??= readCanvasTheme(element);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    latest.current({ context, width, height, theme: theme.current });
  }, []);

  const invalidate = useCallback(() => {
    frame.current ||= requestAnimationFrame(draw);
  }, [draw]);

  const canvasRef = useCallback(
    (element: HTMLCanvasElement | null) => {
      stop.current?.();
      stop.current = null;
      canvas.current = element;
      if (!element) return;
      const sizes = new ResizeObserver(invalidate);
      sizes.observe(element);
      const themeChanged = () => {
        theme.current = null;
        invalidate();
      };
      const unwatch = watchTheme(themeChanged);
      const stopRatio = watchPixelRatio(invalidate);
      let mounted = true;
      document.fonts?.ready.then(() => mounted && invalidate());
      stop.current = () => {
        mounted = false;
        sizes.disconnect();
        unwatch();
        stopRatio();
        cancelAnimationFrame(frame.current);
        frame.current = 0;
      };
      invalidate();
    },
    [invalidate],
  );

  useEffect(invalidate);
  return { canvasRef, invalidate };
}

/** A window can move to another screen, or be zoomed: the ratio is watched for as long as it is not what it was. */
function watchPixelRatio(changed: () => void): () => void {
  let query: MediaQueryList;
  const again = () => {
    query = matchMedia(`(resolution: ${window.devicePixelRatio}dppx)`);
    query.addEventListener('change', next, { once: true });
  };
  const next = () => {
    changed();
    again();
  };
  again();
  return () => query.removeEventListener('change', next);
}
