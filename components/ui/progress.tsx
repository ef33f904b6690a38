/** A thin bar: how much of the whole is done. The number stands beside it, so the bar itself is silent. */
export function Progress({ done, total, className = 'w-16' }: { done: number; total: number; className?: string }) {
  const share = total > 0 ? Math.min(1, done / total) : 0;
  return (
    <span
      aria-hidden="true"
      className={`inline-block h-1 overflow-hidden rounded-full bg-line-soft align-middle ${className}`}
    >
      <span className="block h-full bg-ink-3 transition-[width]" style={{ width: `${share * 100}%` }} />
    </span>
  );
}
