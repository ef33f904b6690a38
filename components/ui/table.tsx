import type { ComponentProps, ReactNode } from 'react';
import { classNames } from './class-names';
import { ScrollFrame } from './scroll-frame';

/** A dense table; what does not fit scrolls sideways inside its own frame. */
export function Table({
  label,
  className,
  children,
  ...rest
}: { label: string; children: ReactNode } & ComponentProps<'table'>) {
  return (
    <ScrollFrame label={label} className="overflow-x-auto">
      <table {...rest} className={classNames('w-full border-collapse text-left', className)}>
        {children}
      </table>
    </ScrollFrame>
  );
}

const CELL = 'px-2.5 first:pl-4 last:pr-4';

export function Th({ numeric, className, ...rest }: ComponentProps<'th'> & { numeric?: boolean }) {
  return (
    <th
      scope="col"
      {...rest}
      className={classNames(
        CELL,
        'h-7 border-b border-line-soft text-sm font-normal whitespace-nowrap text-ink-3',
        numeric && 'text-right',
        className,
      )}
    />
  );
}

export function Td({ numeric, className, ...rest }: ComponentProps<'td'> & { numeric?: boolean }) {
  return (
    <td
      {...rest}
      className={classNames(
        CELL,
        'border-b border-line-soft py-1.5 align-baseline',
        numeric && 'text-right whitespace-nowrap',
        className,
      )}
    />
  );
}

export const ROW_CLASS = 'hover:bg-panel';
/** The link that names a row. */
export const ROW_LINK_CLASS = 'font-medium text-ink underline decoration-line underline-offset-3 hover:decoration-ink';
