/** The whole sequence in one strip: a pixel row is the stretch of rows it stands for. */
import type { CanvasTheme } from '../charts/canvas-theme';
import type { ChannelView } from './channels';
import { type Matches, tokenOfByte } from './find';
import type { TokenLayout } from './layout';
import { type Context, cellColour } from './paint';

/** Tokens looked at for one pixel row. */
const SAMPLES = 48;

/**
 * The token whose colour stands for tokens from–to: of sampled ones the one furthest from zero, so that a short
 * high stretch is not averaged away; −1 where the policy wrote none of those looked at.
 */
export function representative(view: ChannelView, mask: Uint8Array, from: number, to: number): number {
  const stride = Math.max(1, Math.floor((to - from) / SAMPLES));
  let best = -1;
  let bestValue = -1;
  for (let token = from; token < to; token += stride) {
    if (mask[token] !== 1) continue;
    const value = view.scale ? Math.abs(view.valueAt(token)) : 0;
    if (best < 0 || value > bestValue) {
      best = token;
      bestValue = value;
    }
  }
  return best;
}

export function paintMinimap(
  context: Context,
  layout: TokenLayout,
  view: ChannelView,
  theme: CanvasTheme,
  size: { width: number; height: number; total: number },
  matches: Matches,
): void {
  const { width, height, total } = size;
  context.fillStyle = theme.bg;
  context.fillRect(0, 0, width, height);
  if (layout.rowCount === 0 || total === 0) return;
  const { mask } = layout.tokens;
  const laid = Math.min(height, (layout.height / total) * height);
  const pixels = Math.min(height, Math.ceil(laid));
  let first = 0;
  for (let y = 0; y < pixels; y++) {
    const end = y + 1 < pixels ? (layout.rowToken[layout.rowAt(((y + 1) / height) * total)] as number) : layout.done;
    const last = Math.max(first + 1, Math.min(layout.done, end));
    const token = representative(view, mask, first, last);
    context.fillStyle = token < 0 ? theme.lineSoft : (cellColour(view, token, theme) ?? theme.line);
    // Half a pixel more than its row: at a ratio of 1.5 the seams would show.
    context.fillRect(3, y, width - 6, 1.5);
    if (end > first) first = Math.min(end, layout.done - 1);
  }
  context.fillStyle = theme.ink;
  const stride = Math.max(1, Math.floor(matches.starts.length / 2000));
  for (let match = 0; match < matches.starts.length; match += stride) {
    const token = tokenOfByte(layout.tokens.byteEnds, matches.starts[match] as number);
    if (token >= layout.done) break;
    context.fillRect(0, Math.round((layout.yOfRow(layout.rowOfToken(token)) / total) * height), 3, 2);
  }
}
