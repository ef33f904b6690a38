/** What a browser remembers for the person who uses it: theme and language, in cookies the server reads. */
export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];
export const THEME_COOKIE = 'theme';

export function readTheme(value: string | undefined): Theme {
  return THEMES.find((theme) => theme === value) ?? 'system';
}

/** Kept for a year, for this origin. Browser only. */
export function rememberPreference(name: 'theme' | 'locale', value: string): void {
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing over plain http and in Firefox ESR
  document.cookie = `${name}=${encodeURIComponent(value)}; path=/; max-age=31536000; samesite=lax`;
}

/** Takes effect at once; globals.css hangs every colour on this attribute. */
export function applyTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
  rememberPreference('theme', theme);
}
