import { describe, expect, it } from 'vitest';
import { contrast, DATA_COLOURS, type Rgb, rampColours, type ThemeName } from './palette';
import { RAMP_STEPS } from './scale';

/** How a colour looks without the middle-wave cones (Viénot, Brettel & Mollon 1999), in linear light roughly. */
const withoutGreen = ([r, g, b]: Rgb): Rgb => [0.29 * r + 0.71 * g, 0.29 * r + 0.71 * g, -0.02 * r + 0.02 * g + b];
const distance = (a: Rgb, b: Rgb): number => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);

describe.each<ThemeName>(['light', 'dark'])('the %s data colours', (theme) => {
  it('keep text readable on every entry of every ramp', () => {
    const { ink, categories } = DATA_COLOURS[theme];
    for (const kind of ['diverging', 'sequential'] as const)
      for (const colour of rampColours(theme, kind)) expect(contrast(ink, colour)).toBeGreaterThanOrEqual(4.5);
    for (const colour of categories) expect(contrast(ink, colour)).toBeGreaterThanOrEqual(4.5);
  });
  it('tell below from above without green cones too', () => {
    const colours = rampColours(theme, 'diverging');
    for (const share of [0.1, 0.25, 0.5]) {
      const below = colours[Math.round(RAMP_STEPS * (0.5 - share))] as Rgb;
      const above = colours[Math.round(RAMP_STEPS * (0.5 + share))] as Rgb;
      expect(distance(withoutGreen(below), withoutGreen(above))).toBeGreaterThan(25);
    }
  });
  it('start from the neutral colour', () => {
    expect(rampColours(theme, 'diverging')[RAMP_STEPS / 2]).toEqual(DATA_COLOURS[theme].neutral);
    expect(rampColours(theme, 'sequential')[0]).toEqual(DATA_COLOURS[theme].neutral);
  });
});
