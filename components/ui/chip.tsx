import type { ReactNode } from 'react';
import { classNames } from './class-names';

export type Tone = 'plain' | 'ok' | 'bad' | 'warn' | 'accent' | 'dim';

export const TONE_TEXT: Record<Tone, string> = {
  plain: 'text-ink',
  ok: 'text-ok',
  bad: 'text-bad',
  warn: 'text-warn',
  accent: 'text-accent',
  dim: 'text-ink-3',
};

/** A fact in a frame: a dim word and a strong value (`label="backend"`, children `local`). */
export function Chip({
  label,
  tone = 'plain',
  title,
  keepEnd = false,
  className,
  children,
}: {
  label?: ReactNode;
  tone?: Tone;
  title?: string;
  /** Cut at the beginning: a path, whose end tells it from others. */
  keepEnd?: boolean;
  className?: string;
  children?: ReactNode;
}) {
  return (
    <span
      title={title}
      className={classNames(
        'inline-flex min-w-0 items-baseline gap-1 rounded border border-line px-1.5 py-px text-sm whitespace-nowrap',
        className ?? 'max-w-full',
      )}
    >
      {label ? <span className="text-ink-2">{label}</span> : null}
      {children === undefined ? null : (
        <span className={classNames('foreign-line font-semibold', keepEnd && 'foreign-end', TONE_TEXT[tone])}>
          {keepEnd ? <bdi>{children}</bdi> : children}
        </span>
      )}
    </span>
  );
}
