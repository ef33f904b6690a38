import { classNames } from './class-names';

/** A quiet bar where something is on its way. Size it with `className`. */
export function Skeleton({ className }: { className?: string }) {
  return <span aria-hidden="true" className={classNames('pulse-soft block rounded-sm bg-line-soft', className)} />;
}

/** Rows of bars, of uneven length as text is. `label` is what a screen reader hears. */
export function SkeletonRows({ rows = 6, label }: { rows?: number; label: string }) {
  return (
    <div role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows have no identity and never move
        <div key={row} className="flex items-center gap-4 border-b border-line-soft px-4 py-2.5">
          <Skeleton className={['h-3 w-2/5', 'h-3 w-1/3', 'h-3 w-1/2', 'h-3 w-1/4'][row % 4] ?? 'h-3 w-1/3'} />
          <Skeleton className="ml-auto h-3 w-16" />
          <Skeleton className="h-3 w-10" />
        </div>
      ))}
    </div>
  );
}
