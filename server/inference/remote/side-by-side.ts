/** How many small requests (texts of tokens, ids of texts) are sent to one server at once. */
const AT_ONCE = 32;

/** The same function, of which at most 32 calls run at a time; the others wait their turn. */
export function sideBySide<Argument, Result>(
  call: (argument: Argument) => Promise<Result>,
): (argument: Argument) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (argument) => {
    if (running >= AT_ONCE) await new Promise<void>((go) => waiting.push(go));
    else running++;
    try {
      return await call(argument);
    } finally {
      const next = waiting.shift();
      // The turn goes over to the next one.
      if (next) next();
      else running--;
    }
  };
}
