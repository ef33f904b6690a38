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
    <ScrollFrame label={label} className="@container overflow-x-auto scroll-edges">
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

/** Text that belongs to the row above: over the width that is seen, also while the table is scrolled sideways. */
export function NoteRow({ columns, children }: { columns: number; children: ReactNode }) {
  return (
    <tr>
      <td colSpan={columns} className="max-w-0 border-b border-line-soft bg-panel p-0">
        <div className="sticky left-0 max-w-[100cqi] px-4 py-1.5 text-sm text-ink-2">{children}</div>
      </td>
    </tr>
  );
}

export const ROW_CLASS = 'hover:bg-panel';
/** The link that names a row. */
export const ROW_LINK_CLASS = 'font-medium text-ink underline decoration-line underline-offset-3 hover:decoration-ink';
