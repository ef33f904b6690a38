/** The page's colours as a canvas needs them: resolved once, read again when the theme changes. */
import type { ThemeName } from './palette';

export interface CanvasTheme {
  name: ThemeName;
  bg: string;
  panel: string;
  line: string;
  lineSoft: string;
  ink: string;
  ink2: string;
  ink3: string;
  accent: string;
  ok: string;
  bad: string;
  warn: string;
  hatch: string;
  selection: string;
  sans: string;
  mono: string;
}

const FALLBACK_MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const FALLBACK_SANS = 'Inter, system-ui, sans-serif';

export function readCanvasTheme(element: Element): CanvasTheme {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim() || '#808080';
  return {
    name: isDark(colour('bg')) ? 'dark' : 'light',
    bg: colour('bg'),
    panel: colour('panel'),
    line: colour('line'),
    lineSoft: colour('line-soft'),
    ink: colour('ink'),
    ink2: colour('ink-2'),
    ink3: colour('ink-3'),
    accent: colour('accent'),
    ok: colour('ok'),
    bad: colour('bad'),
    warn: colour('warn'),
    hatch: colour('hatch'),
    selection: colour('selection'),
    sans: style.getPropertyValue('--font-sans').trim() || FALLBACK_SANS,
    mono: style.getPropertyValue('--font-mono').trim() || FALLBACK_MONO,
  };
}

/** By the background's own lightness, so that it holds for `data-theme` and for the system's choice alike. */
function isDark(background: string): boolean {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})/i.exec(background);
  if (!hex) return false;
  const [red, green, blue] = hex.slice(1).map((part) => Number.parseInt(part, 16)) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128;
}

/** Calls back when the page's theme may have changed; returns how to stop. */
export function watchTheme(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme', 'class', 'style'] });
  const system = matchMedia('(prefers-color-scheme: dark)');
  system.addEventListener('change', changed);
  return () => {
    observer.disconnect();
    system.removeEventListener('change', changed);
  };
}
