'use client';
import { usePathname, useSearchParams } from 'next/navigation';
import { useCallback } from 'react';

/**
 * A page's filters, kept in its address so that a link shows the same view. Empty values leave the address.
 * `const [filters, setFilter] = useUrlState(['status', 'sort'])`.
 */
export function useUrlState<K extends string>(
  keys: readonly K[],
): [Record<K, string>, (key: K, value: string) => void] {
  const search = useSearchParams();
  const pathname = usePathname();
  const values = Object.fromEntries(keys.map((key) => [key, search.get(key) ?? ''])) as Record<K, string>;
  const set = useCallback(
    (key: K, value: string) => {
      // Read at the moment of the change: two changes in one moment must not undo each other.
      const next = new URLSearchParams(window.location.search);
      // Writing the address, even as it is, would stop the router on its way to another page.
      if ((next.get(key) ?? '') === value) return;
      if (value === '') next.delete(key);
      else next.set(key, value);
      const query = next.toString();
      window.history.replaceState(null, '', query ? `${pathname}?${query}` : pathname);
    },
    [pathname],
  );
  return [values, set];
}

/** The value when it is one of the allowed, else undefined: an address is written by anyone. */
export function oneOf<T extends string>(value: string, allowed: readonly T[]): T | undefined {
  return allowed.find((item) => item === value);
}
