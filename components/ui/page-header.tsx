import Link from 'next/link';
import type { ReactNode } from 'react';

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
      <div className="flex max-w-full min-w-0 items-baseline gap-1.5">
        {trail.map(({ label, href }) => (
          <span key={href} className="flex min-w-0 shrink gap-1.5 text-ink-2">
            <Link href={href} className="foreign-line hover:text-ink hover:underline">
              {label}
            </Link>
            <span aria-hidden="true">/</span>
          </span>
        ))}
        <h1 className="foreign-line font-bold" title={typeof title === 'string' ? title : undefined}>
          {title}
        </h1>
      </div>
      {facts ? <div className="flex min-w-0 flex-wrap items-center gap-1.5">{facts}</div> : null}
      {actions ? <div className="ml-auto flex flex-wrap items-center gap-1.5">{actions}</div> : null}
    </header>
  );
}
