import type { ReactNode, Ref } from 'react';
import { classNames } from './class-names';

/** A part that scrolls inside the page: named, and reachable by keyboard so that arrow keys scroll it. */
export function ScrollFrame({
  label,
  className,
  ref,
  children,
}: {
  label: string;
  className?: string;
  ref?: Ref<HTMLElement>;
  children: ReactNode;
}) {
  return (
    <section
      ref={ref}
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a frame that scrolls must be reachable by keyboard
      tabIndex={0}
      className={classNames('focus-visible:-outline-offset-2', className)}
    >
      {children}
    </section>
  );
}
