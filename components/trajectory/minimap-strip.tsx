'use client';
import { type PointerEvent, useEffect, useRef } from 'react';
import { type Surface, useCanvas } from '@/components/charts/use-canvas';
import type { ChannelView } from './channels';
import type { Matches } from './find';
import type { TokenLayout } from './layout';
import { paintMinimap } from './minimap';

type Changed = (layout: TokenLayout, total: number, top: number, height: number) => void;

/** The strip at the right: the whole sequence, the window on it, search matches. Press or drag to go there. */
export function Minimap({
  width,
  view,
  matches,
  connect,
  onJump,
}: {
  width: number;
  view: ChannelView;
  matches: Matches;
  connect: (changed: Changed) => void;
  onJump: (share: number) => void;
}) {
  const shown = useRef<{ layout: TokenLayout; total: number; top: number; height: number } | null>(null);
  const base = useRef<{ canvas: HTMLCanvasElement; key: unknown[] } | null>(null);

  function paint({ context, width, height, theme }: Surface): void {
    context.fillStyle = theme.bg;
    context.fillRect(0, 0, width, height);
    const at = shown.current;
    if (!at) return;
    const key = [
      at.layout,
      at.layout.finished || Math.floor(at.layout.done / 60_000),
      at.total,
      view,
      matches,
      theme,
      width,
      height,
      window.devicePixelRatio,
    ];
    if (!base.current || key.some((part, i) => part !== base.current?.key[i])) {
      const canvas = base.current?.canvas ?? document.createElement('canvas');
      canvas.width = context.canvas.width;
      canvas.height = context.canvas.height;
      const inside = canvas.getContext('2d', { alpha: false });
      if (!inside) return;
      inside.setTransform(context.getTransform());
      paintMinimap(inside, at.layout, view, theme, { width, height, total: at.total }, matches);
      base.current = { canvas, key };
    }
    context.drawImage(base.current.canvas, 0, 0, width, height);
    if (at.total <= at.height) return;
    const top = (at.top / at.total) * height;
    const size = Math.max(6, (at.height / at.total) * height);
    context.strokeStyle = theme.ink;
    context.lineWidth = 1.5;
    context.strokeRect(0.75, Math.min(top, height - size) + 0.75, width - 1.5, size - 1.5);
  }

  const { canvasRef, invalidate } = useCanvas(paint);
  useEffect(() => {
    connect((layout, total, top, height) => {
      const old = shown.current;
      shown.current = { layout, total, top, height };
      if (!old || old.layout !== layout || old.total !== total || old.top !== top || !layout.finished) invalidate();
    });
  });

  function jump(event: PointerEvent<HTMLCanvasElement>): void {
    const box = event.currentTarget.getBoundingClientRect();
    onJump((event.clientY - box.top) / box.height);
  }

  return (
    <canvas
      ref={canvasRef}
      className="absolute inset-y-0 right-0 h-full cursor-pointer touch-none"
      style={{ width }}
      data-token-minimap=""
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        jump(event);
      }}
      onPointerMove={(event) => {
        if (event.buttons === 1) jump(event);
      }}
    />
  );
}
