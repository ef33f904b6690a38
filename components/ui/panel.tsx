import type { ReactNode } from 'react';
import { classNames } from './class-names';

/** A part of a page under a heading line; panels touch and are parted by hairlines. */
export function Panel({
  title,
  aside,
  className,
  bodyClassName,
  children,
}: {
  title?: ReactNode;
  aside?: ReactNode;
  className?: string;
  bodyClassName?: string;
  children: ReactNode;
}) {
  return (
    <section className={classNames('min-w-0', className)}>
      {title === undefined ? null : <PanelHeader title={title} aside={aside} />}
      <div className={bodyClassName}>{children}</div>
    </section>
  );
}

export function PanelHeader({ title, aside }: { title: ReactNode; aside?: ReactNode }) {
  return (
    <header className="flex min-h-8 flex-wrap items-center justify-between gap-x-4 gap-y-0.5 border-b border-line-soft px-4 py-1 text-sm">
      <h2 className="min-w-0 font-semibold text-ink-2">{title}</h2>
      {aside === undefined ? null : <div className="min-w-0 text-ink-3">{aside}</div>}
    </header>
  );
}
