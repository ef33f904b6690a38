import { useState } from 'react';

/**
 * What a request failed with, while the state that it failed in lasts: whatever it said of that state is over with it.
 * A request awaits the refreshed state (`onSettled` returns it) before it fails, so that its own news does not hide it.
 */
export function useErrorWhile(state: string, error: unknown): unknown {
  const [known, setKnown] = useState<{ state: string; over: unknown }>({ state, over: null });
  if (known.state === state) return error === known.over ? null : error;
  setKnown({ state, over: error });
  return null;
}
