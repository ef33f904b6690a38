import Link from 'next/link';
import type { ComponentProps } from 'react';
import { classNames } from './class-names';

export type ButtonKind = 'primary' | 'outline' | 'quiet' | 'danger';

const KINDS: Record<ButtonKind, string> = {
  primary: 'border-ink bg-ink text-bg hover:bg-ink-2 hover:border-ink-2',
  outline: 'border-line bg-bg text-ink hover:bg-panel',
  quiet: 'border-transparent text-ink-2 hover:bg-panel hover:text-ink',
  danger: 'border-line bg-bg text-bad hover:border-bad',
};

export function buttonClass(kind: ButtonKind = 'outline', className?: string): string {
  return classNames(
    'inline-flex min-h-7 shrink-0 items-center justify-center gap-1.5 rounded border px-2.5 py-0.5 text-base font-medium whitespace-nowrap',
    'transition-colors disabled:opacity-50 disabled:pointer-events-none aria-disabled:opacity-50 aria-disabled:cursor-default max-sm:min-h-9',
    KINDS[kind],
    className,
  );
}

/**
 * `busy` keeps the width, tells screen readers, and refuses a second press. It does not disable the button: that would
 * take the focus from whoever pressed it by keyboard.
 */
export function Button({
  kind,
  busy = false,
  className,
  type = 'button',
  onClick,
  ...rest
}: ComponentProps<'button'> & { kind?: ButtonKind; busy?: boolean }) {
  return (
    <button
      {...rest}
      type={type}
      // Enter in a field of the form comes here as a click, too.
      onClick={busy ? (event) => event.preventDefault() : onClick}
      aria-disabled={busy || undefined}
      aria-busy={busy || undefined}
      className={buttonClass(kind, classNames(busy && 'pulse-soft', className))}
    />
  );
}

export function ButtonLink({ kind, className, ...rest }: ComponentProps<typeof Link> & { kind?: ButtonKind }) {
  return <Link {...rest} className={buttonClass(kind, className)} />;
}
