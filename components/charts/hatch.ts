/** Diagonal lines: "the policy did not write this", "this did not finish". One tile a colour and pixel ratio, kept. */
const TILE = 6;
const tiles = new Map<string, HTMLCanvasElement>();

/** A pattern that stays with the content: pass how far the content is scrolled. */
export function hatchPattern(context: CanvasRenderingContext2D, colour: string, scrollY = 0): CanvasPattern | string {
  const ratio = window.devicePixelRatio || 1;
  const key = `${colour} ${ratio}`;
  let tile = tiles.get(key);
  if (!tile) {
    tile = document.createElement('canvas');
    const size = Math.round(TILE * ratio);
    tile.width = size;
    tile.height = size;
    const inside = tile.getContext('2d');
    if (!inside) return colour;
    inside.strokeStyle = colour;
    inside.lineWidth = ratio;
    inside.lineCap = 'square';
    inside.beginPath();
    for (const shift of [-size, 0, size]) {
      inside.moveTo(shift, size);
      inside.lineTo(shift + size, 0);
    }
    inside.stroke();
    tiles.set(key, tile);
  }
  const pattern = context.createPattern(tile, 'repeat');
  if (!pattern) return colour;
  const scale = TILE / tile.width;
  pattern.setTransform(new DOMMatrix().translate(0, -(scrollY % TILE)).scale(scale));
  return pattern;
}
