/** Waiting for a server only so long: a page must not hang because one does not answer. */

/** How long a page waits for one backend. */
export const PATIENCE_MS = 3_000;

/** What `asked` resolves to, or `late` after that time; what comes later is dropped. Rejects as it does in time. */
export async function withPatience<T, L>(asked: Promise<T>, late: L, patienceMs = PATIENCE_MS): Promise<T | L> {
  asked.catch(() => undefined);
  let timer: NodeJS.Timeout | undefined;
  const waiting = new Promise<L>((resolve) => {
    timer = setTimeout(() => resolve(late), patienceMs);
  });
  try {
    return await Promise.race([asked, waiting]);
  } finally {
    clearTimeout(timer);
  }
}
