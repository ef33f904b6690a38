'use client';
import { type ReactNode, useLayoutEffect, useRef } from 'react';

export interface TipAt {
  /** Pixels in the window. */
  x: number;
  y: number;
}

/** What lies under the pointer, beside it and inside the window. */
export function ChartTip({ at, children }: { at: TipAt; children: ReactNode }) {
  const box = useRef<HTMLDivElement | null>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const { offsetWidth: width, offsetHeight: height } = element;
    const left = at.x + 14 + width > window.innerWidth - 8 ? at.x - width - 14 : at.x + 14;
    const top = at.y + 14 + height > window.innerHeight - 8 ? at.y - height - 14 : at.y + 14;
    element.style.left = `${Math.max(8, left)}px`;
    element.style.top = `${Math.max(8, top)}px`;
  });
  return (
    <div
      ref={box}
      role="tooltip"
      className="pointer-events-none fixed z-50 max-w-80 rounded border border-line bg-raised px-2.5 py-1.5 text-xs text-ink-2 shadow-raised"
    >
      {children}
    </div>
  );
}
