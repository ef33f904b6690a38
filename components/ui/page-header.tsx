import Link from 'next/link';
import type { ReactNode } from 'react';
import { classNames } from './class-names';

/** The line at the top of a page: where it is, its facts as chips, and at the right what can be done. */
export function PageHeader({
  trail = [],
  title,
  facts,
  actions,
}: {
  trail?: { label: string; href: string }[];
  title: ReactNode;
  facts?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <header className="flex min-h-11 flex-wrap items-center gap-x-3 gap-y-1.5 border-b px-4 py-1.5">
      <div
        className={classNames(
          'flex max-w-full min-w-0 items-baseline gap-x-1.5 max-sm:min-w-40 max-sm:flex-1',
          // Deep down a phone has no room for the way and the title on one line.
          trail.length > 1 && 'max-sm:flex-wrap',
        )}
      >
        {trail.map(({ label, href }) => (
          <span key={href} className="flex max-w-60 shrink-0 gap-1.5 text-ink-2 max-sm:max-w-24">
            <Link href={href} className="foreign-line hover:text-ink hover:underline">
              {label}
            </Link>
            <span aria-hidden="true">/</span>
          </span>
        ))}
        <h1
          className={classNames('foreign-line min-w-12 font-bold', trail.length > 1 && 'max-sm:w-full')}
          title={typeof title === 'string' ? title : undefined}
        >
          {title}
        </h1>
      </div>
      {facts ? (
        <div className="flex min-w-0 flex-wrap items-center gap-1.5 max-sm:order-last max-sm:w-full">{facts}</div>
      ) : null}
      {actions ? <div className="ml-auto flex flex-wrap items-center gap-1.5">{actions}</div> : null}
    </header>
  );
}
