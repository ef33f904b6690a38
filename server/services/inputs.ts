/** Pieces of input schemas that several verbs share. Everything a caller sends is bounded here, before any query. */
import { z } from 'zod';
import { Invalid } from '../core/errors';

/** An identifier made by `makeId`: letters, digits and one underscore, so that it can never be a path or a pattern. */
export const idSchema = z.string().regex(/^[a-z]{3}_[0-9a-z]{26}$/, 'is not an identifier of the studio');

/** The database's text cannot hold U+0000, and half a surrogate pair would be stored as another character. */
export const isStorable = (text: string): boolean => !text.includes('\0') && !/\p{Surrogate}/u.test(text);
export const UNSTORABLE = 'holds U+0000 or half of a surrogate pair, which cannot be stored';

/** A name people give: shown, put in addresses, never a path. */
export const nameSchema = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(120, 'must not be longer than 120 characters')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  .refine((name) => !/[\u0000-\u001f\u007f/\\]/.test(name), 'must not hold slashes or control characters')
  .refine(isStorable, UNSTORABLE);

export const cursorSchema = z.string().max(200).nullish();
export const limitSchema = z.number().int().min(1).max(200).default(50);

/** Parses what a caller sent; throws Invalid with one sentence that names the first field that is wrong. */
export function parseInput<S extends z.ZodType>(schema: S, input: unknown): z.infer<S> {
  const parsed = schema.safeParse(input);
  if (!parsed.success) throw new Invalid(describeIssues(parsed.error), { issues: parsed.error.issues.slice(0, 20) });
  return parsed.data;
}

/** One sentence for people from a zod error. */
export function describeIssues(error: {
  issues: readonly { path: readonly PropertyKey[]; message: string }[];
}): string {
  const issue = error.issues[0];
  if (!issue) return 'The input cannot be used.';
  const where = issue.path.length === 0 ? 'The input' : `The field ${issue.path.map(String).join('.')}`;
  const more = error.issues.length > 1 ? ` (and ${error.issues.length - 1} more)` : '';
  return `${where} cannot be used: ${issue.message.replace(/\.$/, '')}${more}.`;
}
