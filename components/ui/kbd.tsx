import type { ReactNode } from 'react';

export function Kbd({ children }: { children: ReactNode }) {
  return (
    <kbd className="inline-block min-w-4.5 rounded border border-line px-1 text-center font-mono text-xs text-ink-2">
      {children}
    </kbd>
  );
}
