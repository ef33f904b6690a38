'use client';
import { type ComponentProps, type ReactNode, useId } from 'react';
import { classNames } from './class-names';

export const INPUT_CLASS =
  'h-7 w-full min-w-0 rounded border border-line-field bg-raised px-2 text-base text-ink max-sm:h-9 aria-invalid:border-bad disabled:opacity-60';

/** A labelled control. The child gets the ids that tie label, hint and error to it. */
export function Field({
  label,
  hint,
  error,
  className,
  children,
}: {
  label: ReactNode;
  hint?: ReactNode;
  error?: string | null;
  className?: string;
  children: (wiring: {
    id: string;
    'aria-describedby': string | undefined;
    'aria-invalid': boolean | undefined;
  }) => ReactNode;
}) {
  const id = useId();
  const noteId = `${id}-note`;
  const note = error ?? hint;
  return (
    <div className={classNames('min-w-0', className)}>
      <label htmlFor={id} className="mb-1 block text-sm text-ink-2">
        {label}
      </label>
      {children({ id, 'aria-describedby': note ? noteId : undefined, 'aria-invalid': error ? true : undefined })}
      {note ? (
        <p
          id={noteId}
          role={error ? 'alert' : undefined}
          className={classNames('mt-1 text-sm', error ? 'text-bad' : 'text-ink-3')}
        >
          {note}
        </p>
      ) : null}
    </div>
  );
}

export function TextInput({ className, ...rest }: ComponentProps<'input'>) {
  return <input autoComplete="off" spellCheck={false} {...rest} className={classNames(INPUT_CLASS, className)} />;
}

export function Select({ className, ...rest }: ComponentProps<'select'>) {
  return <select {...rest} className={classNames(INPUT_CLASS, 'truncate pr-6', className)} />;
}
