import type { ReactNode } from 'react';
import { classNames } from './class-names';

/** Nothing here, and what to do about it. */
export function EmptyState({
  title,
  action,
  className,
  children,
}: {
  title: ReactNode;
  action?: ReactNode;
  className?: string;
  children?: ReactNode;
}) {
  return (
    <div className={classNames('flex flex-col items-start gap-2 px-4 py-8', className)}>
      <p className="text-lg font-semibold">{title}</p>
      {children ? <div className="max-w-[60ch] text-ink-2">{children}</div> : null}
      {action ? <div className="mt-2 flex flex-wrap gap-2">{action}</div> : null}
    </div>
  );
}

/** Something failed: which thing, the server's sentence, and a way on. */
export function ErrorState({
  title,
  message,
  action,
  className,
}: {
  title: ReactNode;
  message: string;
  action?: ReactNode;
  className?: string;
}) {
  return (
    <div
      role="alert"
      className={classNames('flex flex-col items-start gap-2 border-l-2 border-bad px-4 py-4', className)}
    >
      <p className="font-semibold text-bad">{title}</p>
      <p className="foreign-text max-w-[80ch] text-ink-2">{message}</p>
      {action ? <div className="mt-1 flex flex-wrap gap-2">{action}</div> : null}
    </div>
  );
}

/** A line a person should read before going on. */
export function Notice({ tone = 'warn', children }: { tone?: 'warn' | 'bad' | 'ok'; children: ReactNode }) {
  const edge = { warn: 'border-warn', bad: 'border-bad', ok: 'border-ok' }[tone];
  return (
    <div
      className={classNames(
        'foreign-text max-h-40 overflow-y-auto border-l-2 bg-panel px-3.5 py-1.5 text-sm text-ink',
        edge,
      )}
    >
      {children}
    </div>
  );
}
