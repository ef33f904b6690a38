'use client';
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react';

/** A key that works on the page that is open, for the overview behind `?`. */
export interface PageKey {
  /** As a person reads it: `j`, `⇧ K`, `←`. */
  keys: string;
  /** What it does, in the person's language. */
  does: string;
}

const Announce = createContext<((keys: PageKey[]) => void) | null>(null);
const Announced = createContext<PageKey[]>([]);

export function PageKeysProvider({ children }: { children: ReactNode }) {
  const [keys, setKeys] = useState<PageKey[]>([]);
  return (
    <Announce value={setKeys}>
      <Announced value={keys}>{children}</Announced>
    </Announce>
  );
}

/** Lists a page's own keys in the overview while the page is open. It does not listen: the page does. */
export function usePageKeys(keys: PageKey[]): void {
  const announce = useContext(Announce);
  const written = JSON.stringify(keys);
  const stable = useMemo(() => JSON.parse(written) as PageKey[], [written]);
  useEffect(() => {
    announce?.(stable);
    return () => announce?.([]);
  }, [announce, stable]);
}

export function useAnnouncedKeys(): PageKey[] {
  return useContext(Announced);
}

/** True while the person writes into something, or holds a modifier: then a letter is not a command. */
export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement)
    return true;
  return target instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'submit', 'file'].includes(target.type);
}
