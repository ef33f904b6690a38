/**
 * Large answers that arrive together are worked on one in a turn of the event loop: hundreds in one turn would hold up
 * everything else in this process for as long as all of them take.
 */
let taken = false;
const waiting: (() => void)[] = [];

/** Null when the turn is free and the caller's now; else it waits for one. */
export function parseTurn(): Promise<void> | null {
  if (taken) return new Promise((go) => waiting.push(go));
  taken = true;
  setImmediate(nextTurn);
  return null;
}

function nextTurn(): void {
  const go = waiting.shift();
  taken = go !== undefined;
  if (!go) return;
  setImmediate(nextTurn);
  go();
}
