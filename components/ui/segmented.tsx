'use client';
import { useId } from 'react';
import { classNames } from './class-names';

/** One of a few, side by side; a radio group to the keyboard and to screen readers. */
export function Segmented<T extends string>({
  label,
  value,
  options,
  onChange,
  className,
}: {
  label: string;
  value: T;
  options: readonly { value: T; label: string; title?: string; disabled?: boolean }[];
  onChange: (value: T) => void;
  className?: string;
}) {
  const name = useId();
  return (
    <fieldset
      className={classNames(
        'inline-flex max-w-full min-w-0 overflow-x-auto rounded border border-line text-sm',
        className,
      )}
    >
      <legend className="sr-only">{label}</legend>
      {options.map((option) => (
        <label
          key={option.value}
          title={option.title}
          className={classNames(
            'relative shrink-0 cursor-pointer border-l border-line px-2 py-0.5 whitespace-nowrap first:border-l-0 max-sm:py-1.5',
            'has-focus-visible:outline-2 has-focus-visible:-outline-offset-2 has-focus-visible:outline-accent',
            option.value === value ? 'bg-ink font-semibold text-bg' : 'text-ink-2 hover:bg-panel',
            option.disabled && 'pointer-events-none opacity-45',
          )}
        >
          <input
            type="radio"
            className="sr-only"
            name={name}
            value={option.value}
            checked={option.value === value}
            disabled={option.disabled}
            onChange={() => onChange(option.value)}
          />
          {option.label}
        </label>
      ))}
    </fieldset>
  );
}
