'use client';
import { useRouter } from 'next/navigation';
import { useLocale, useTranslations } from 'next-intl';
import { useState } from 'react';
import { classNames } from '@/components/ui/class-names';
import { LOCALES } from './locale';
import { applyTheme, rememberPreference, THEMES, type Theme } from './preferences';

/** Languages are written in themselves, so that whoever needs one can find it. */
const NAMES = { en: { short: 'EN', whole: 'English' }, zh: { short: '中文', whole: '中文' } } as const;

export function LanguageSwitch() {
  const t = useTranslations('shell');
  const router = useRouter();
  const current = useLocale();
  return (
    <fieldset className="flex items-center gap-1">
      <legend className="sr-only">{t('language')}</legend>
      {LOCALES.map((locale, position) => (
        <span key={locale} className="flex items-center gap-1">
          {position > 0 ? <span aria-hidden="true">·</span> : null}
          <button
            type="button"
            lang={locale}
            aria-label={NAMES[locale].whole}
            aria-pressed={locale === current}
            onClick={() => {
              rememberPreference('locale', locale);
              router.refresh();
            }}
            className={classNames(
              'rounded py-0.5 max-md:px-1 max-md:py-2',
              locale === current ? 'font-semibold text-ink' : 'hover:text-ink',
            )}
          >
            {NAMES[locale].short}
          </button>
        </span>
      ))}
    </fieldset>
  );
}

const SIGNS: Record<Theme, string> = { system: '◐', light: '○', dark: '●' };

export function ThemeSwitch({ initialTheme }: { initialTheme: Theme }) {
  const t = useTranslations('shell');
  const [theme, setTheme] = useState(initialTheme);
  return (
    <fieldset className="flex items-center gap-0.5">
      <legend className="sr-only">{t('theme')}</legend>
      {THEMES.map((choice) => (
        <button
          key={choice}
          type="button"
          aria-label={t(`themes.${choice}`)}
          title={t(`themes.${choice}`)}
          aria-pressed={choice === theme}
          onClick={() => {
            applyTheme(choice);
            setTheme(choice);
          }}
          className={classNames(
            'size-5 rounded text-center leading-5 max-md:size-9 max-md:leading-9',
            choice === theme ? 'bg-panel text-ink' : 'hover:text-ink',
          )}
        >
          <span aria-hidden="true">{SIGNS[choice]}</span>
        </button>
      ))}
    </fieldset>
  );
}
