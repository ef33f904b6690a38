/** How deep lists and objects may nest in JSON from outside: writing JSON takes a level of the stack for each of them. */
export const MAX_JSON_DEPTH = 100;

/** True for a value whose lists and objects lie more than `levels` inside one another. */
export function nestsDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => nestsDeeperThan(levels - 1, inner));
}
