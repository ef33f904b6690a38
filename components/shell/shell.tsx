'use client';
import { usePathname } from 'next/navigation';
import { useTranslations } from 'next-intl';
import { type ReactNode, useCallback, useState } from 'react';
import { Keys } from './keys';
import { Navigation } from './navigation';
import { PageKeysProvider } from './page-keys';
import type { Theme } from './preferences';

/** The quiet frame round every page: places at the left (above on a phone), the page at the right. */
export function Shell({ initialTheme, children }: { initialTheme: Theme; children: ReactNode }) {
  const t = useTranslations('shell');
  const pathname = usePathname();
  const [keysOpen, setKeysOpen] = useState(false);
  const openKeys = useCallback(() => setKeysOpen(true), []);
  const closeKeys = useCallback(() => setKeysOpen(false), []);

  if (pathname === '/sign-in') return <main id="content">{children}</main>;
  return (
    <PageKeysProvider>
      <a
        href="#content"
        className="fixed top-2 left-2 z-50 -translate-y-16 rounded bg-ink px-3 py-1.5 text-bg focus:translate-y-0"
      >
        {t('skip')}
      </a>
      <div className="grid min-h-dvh grid-cols-[minmax(0,1fr)] max-md:grid-rows-[auto_1fr] md:grid-cols-[11.5rem_minmax(0,1fr)]">
        <Navigation initialTheme={initialTheme} onShowKeys={openKeys} />
        <main id="content" tabIndex={-1} className="min-w-0 focus-visible:outline-none">
          {children}
        </main>
      </div>
      <Keys open={keysOpen} onOpen={openKeys} onClose={closeKeys} />
    </PageKeysProvider>
  );
}
