/** Patterns that people and datasets write. RE2 syntax: matching takes linear time, so none can hang the studio. */
import { RE2JS } from 're2js';
import { Invalid } from '../errors';

export interface LinearPattern {
  /** True when the pattern is found anywhere in the text; anchor it with ^ and $ to mean all of it. */
  test(text: string): boolean;
}

/** Throws Invalid with the reason; look-around and back-references are among what RE2 does not have. */
export function compilePattern(pattern: string): LinearPattern {
  let compiled: ReturnType<typeof RE2JS.compile>;
  try {
    compiled = RE2JS.compile(pattern);
  } catch (problem) {
    const why = problem instanceof Error ? problem.message : String(problem);
    throw new Invalid(`The pattern ${JSON.stringify(pattern)} cannot be used: ${why.replace(/\.$/, '')}.`, { pattern });
  }
  return { test: (text) => compiled.matcher(text).find() };
}
