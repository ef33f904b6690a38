/**
 * The data colours: ramps of RAMP_STEPS + 1 entries for light and dark, mixed in OKLab so that equal numbers look
 * equally far apart. Blue–neutral–orange stays apart under every kind of colour blindness. One ink is readable on
 * every entry of a theme (contrast ≥ 4.5, held by the test), so text never changes colour with its number.
 */
import { RAMP_STEPS } from './scale';

export type ThemeName = 'light' | 'dark';
export type Rgb = readonly [red: number, green: number, blue: number];

interface ThemeColours {
  ink: Rgb;
  neutral: Rgb;
  below: Rgb;
  above: Rgb;
  sequence: Rgb;
  /** What a mark of full strength looks like beside text: bars, dots. */
  belowMark: Rgb;
  aboveMark: Rgb;
  categories: readonly Rgb[];
}

export const DATA_COLOURS: Record<ThemeName, ThemeColours> = {
  light: {
    ink: [29, 29, 27],
    neutral: [240, 239, 235],
    below: [72, 143, 214],
    above: [229, 126, 48],
    sequence: [156, 122, 208],
    belowMark: [42, 111, 176],
    aboveMark: [201, 97, 26],
    categories: [
      [206, 222, 238],
      [246, 217, 190],
      [206, 229, 208],
      [231, 211, 236],
      [245, 233, 178],
      [202, 230, 229],
      [240, 208, 208],
      [221, 221, 214],
    ],
  },
  dark: {
    ink: [236, 234, 228],
    neutral: [44, 44, 41],
    below: [30, 96, 164],
    above: [170, 78, 20],
    sequence: [112, 80, 168],
    belowMark: [106, 174, 234],
    aboveMark: [240, 146, 79],
    categories: [
      [38, 66, 96],
      [99, 60, 28],
      [40, 78, 50],
      [83, 52, 92],
      [86, 76, 26],
      [30, 76, 76],
      [98, 48, 48],
      [70, 70, 66],
    ],
  },
};

export const css = ([red, green, blue]: Rgb): string => `rgb(${red} ${green} ${blue})`;

function toOklab(rgb: Rgb): [number, number, number] {
  const [r, g, b] = rgb.map((channel) => linear(channel)) as [number, number, number];
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromOklab([lightness, a, b]: readonly [number, number, number]): Rgb {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    encoded(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    encoded(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    encoded(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

function linear(channel: number): number {
  const unit = channel / 255;
  return unit <= 0.04045 ? unit / 12.92 : ((unit + 0.055) / 1.055) ** 2.4;
}

function encoded(value: number): number {
  const unit = value <= 0.0031308 ? value * 12.92 : 1.055 * value ** (1 / 2.4) - 0.055;
  return Math.round(Math.max(0, Math.min(1, unit)) * 255);
}

/** Contrast of two colours as WCAG 2 counts it, 1 … 21. */
export function contrast(a: Rgb, b: Rgb): number {
  const luminance = ([red, green, blue]: Rgb): number =>
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const a = toOklab(from);
  const b = toOklab(to);
  return fromOklab([a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, a[2] + (b[2] - a[2]) * share]);
}

/** RAMP_STEPS + 1 colours. Small values are lifted a little (power 0.8), or they would drown in the neutral. */
export function rampColours(theme: ThemeName, kind: 'diverging' | 'sequential'): Rgb[] {
  const { neutral, below, above, sequence } = DATA_COLOURS[theme];
  return Array.from({ length: RAMP_STEPS + 1 }, (_, i) => {
    if (kind === 'sequential') return mix(neutral, sequence, (i / RAMP_STEPS) ** 0.8);
    const unit = (i / RAMP_STEPS) * 2 - 1;
    return mix(neutral, unit < 0 ? below : above, Math.abs(unit) ** 0.8);
  });
}

const ramps = new Map<string, string[]>();

/** The same as CSS colours, made once. */
export function ramp(theme: ThemeName, kind: 'diverging' | 'sequential'): readonly string[] {
  const key = `${theme} ${kind}`;
  let colours = ramps.get(key);
  if (!colours) {
    colours = rampColours(theme, kind).map(css);
    ramps.set(key, colours);
  }
  return colours;
}

/** The colour of the n-th weight version; there are eight, then they come again. */
export function categoryColour(theme: ThemeName, index: number): string {
  const { categories } = DATA_COLOURS[theme];
  return css(categories[index % categories.length] as Rgb);
}
