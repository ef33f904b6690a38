import type { Metadata, Viewport } from 'next';
import { cookies } from 'next/headers';
import { NextIntlClientProvider } from 'next-intl';
import { getLocale, getTranslations } from 'next-intl/server';
import type { ReactNode } from 'react';
import { Providers } from '@/components/providers';
import { readTheme, THEME_COOKIE } from '@/components/shell/preferences';
import { Shell } from '@/components/shell/shell';
import './globals.css';

export async function generateMetadata(): Promise<Metadata> {
  const t = await getTranslations('shell');
  return {
    title: { default: t('product'), template: `%s · ${t('product')}` },
    description: t('description'),
    robots: { index: false, follow: false },
  };
}

export const viewport: Viewport = {
  width: 'device-width',
  initialScale: 1,
  themeColor: [
    { media: '(prefers-color-scheme: light)', color: '#fcfcfa' },
    { media: '(prefers-color-scheme: dark)', color: '#131311' },
  ],
};

/** Reads the cookies of language and theme on the server, so that neither flashes. */
export default async function RootLayout({ children }: { children: ReactNode }) {
  const theme = readTheme((await cookies()).get(THEME_COOKIE)?.value);
  return (
    <html lang={await getLocale()} data-theme={theme} suppressHydrationWarning>
      <body>
        <NextIntlClientProvider>
          <Providers>
            <Shell initialTheme={theme}>{children}</Shell>
          </Providers>
        </NextIntlClientProvider>
      </body>
    </html>
  );
}
