/** Which language a page is written in: the cookie's choice, else the browser's first that we have, else English. */
export const LOCALES = ['en', 'zh'] as const;
export type Locale = (typeof LOCALES)[number];
export const LOCALE_COOKIE = 'locale';

export const isLocale = (value: unknown): value is Locale => LOCALES.some((locale) => locale === value);

/** `chooseLocale(undefined, 'fr, zh-TW;q=0.9, en;q=0.8')` → `zh`. */
export function chooseLocale(cookie: string | undefined, acceptLanguage: string | null): Locale {
  if (isLocale(cookie)) return cookie;
  const wanted = (acceptLanguage ?? '')
    .split(',')
    .map((part, position) => {
      const [tag = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      return { language: tag.split('-')[0], weight: weight === undefined ? 1 : Number(weight) || 0, position };
    })
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight || a.position - b.position);
  for (const { language } of wanted) if (isLocale(language)) return language;
  return 'en';
}
