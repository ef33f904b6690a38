'use client';
import { useQuery } from '@tanstack/react-query';
import Link from 'next/link';
import { usePathname } from 'next/navigation';
import { useTranslations } from 'next-intl';
import { useEffect, useState } from 'react';
import { useTRPC } from '@/components/trpc';
import { classNames } from '@/components/ui/class-names';
import { Kbd } from '@/components/ui/kbd';
import { count } from '@/components/ui/numbers';
import { isAt, PLACES } from './places';
import type { Theme } from './preferences';
import { LanguageSwitch, ThemeSwitch } from './switches';
import { ViewerName } from './viewer-name';

/** A column on a wide screen; on a phone a bar whose menu unfolds below it. */
export function Navigation({ initialTheme, onShowKeys }: { initialTheme: Theme; onShowKeys: () => void }) {
  const t = useTranslations();
  const pathname = usePathname();
  const [open, setOpen] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: going somewhere folds the menu
  useEffect(() => setOpen(false), [pathname]);

  return (
    <header className="z-30 bg-bg max-md:sticky max-md:top-0 max-md:border-b md:sticky md:top-0 md:flex md:h-dvh md:flex-col md:border-r">
      <div className="flex h-11 items-center justify-between px-4">
        <Link href="/" className="font-bold tracking-tight">
          {t('shell.product')}
        </Link>
        <button
          type="button"
          aria-expanded={open}
          aria-controls="navigation"
          onClick={() => setOpen(!open)}
          className="-mr-2 min-h-9 rounded px-2 text-ink-2 hover:bg-panel md:hidden"
        >
          {open ? t('shell.closeMenu') : t('shell.menu')}
        </button>
      </div>
      <nav
        id="navigation"
        aria-label={t('shell.navigation')}
        className={classNames(
          'flex-col overflow-y-auto md:flex md:flex-1',
          open ? 'flex border-t border-line-soft max-md:max-h-[calc(100dvh-2.75rem)]' : 'hidden',
        )}
      >
        <ul className="flex flex-col px-2 py-1">
          {PLACES.map(({ id, href }) => {
            const here = isAt(pathname, href);
            return (
              <li key={id}>
                <Link
                  href={href}
                  aria-current={here ? 'page' : undefined}
                  className={classNames(
                    'flex min-h-7 items-center justify-between rounded px-2 py-0.5 max-md:min-h-10',
                    here ? 'bg-panel font-semibold text-ink' : 'text-ink-2 hover:bg-panel hover:text-ink',
                  )}
                >
                  {t(`places.${id}`)}
                  {id === 'runs' ? <LiveCount /> : null}
                </Link>
              </li>
            );
          })}
        </ul>
        <div className="mt-auto flex flex-col gap-2 border-t border-line-soft px-4 py-3 text-sm text-ink-3">
          <ViewerName />
          <div className="flex items-center justify-between gap-2">
            <LanguageSwitch />
            <ThemeSwitch initialTheme={initialTheme} />
          </div>
          <button type="button" onClick={onShowKeys} className="self-start text-ink-3 hover:text-ink max-md:hidden">
            <Kbd>?</Kbd> {t('shell.keys')}
          </button>
        </div>
      </nav>
    </header>
  );
}

function LiveCount() {
  const t = useTranslations('shell');
  const trpc = useTRPC();
  const { data } = useQuery(trpc.runs.list.queryOptions({ status: 'running', limit: 1 }, { refetchInterval: 5_000 }));
  if (!data?.total) return null;
  return <span className="text-sm font-normal text-ink-3">{t('live', { count: count(data.total) })}</span>;
}
