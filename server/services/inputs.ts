/** Pieces of input schemas that several verbs share. Everything a caller sends is bounded here, before any query. */
import { z } from 'zod';
import { Invalid, NotFound, type StudioError } from '../core/errors';
import { MISSING, plainIssue } from './plain-issues';

// The validator's own wording is for programmers. Set here, because the router parses with these schemas by itself.
z.config({ localeError: plainIssue });

/**
 * An identifier made by `makeId`: letters, digits and one underscore, so that it can never be a path or a pattern. Nothing
 * has another one, so that a thing asked for by that is not there.
 */
export const idSchema = (thing: string) =>
  z.string().refine((id) => /^[a-z]{3}_[0-9a-z]{26}$/.test(id), {
    error: ({ input }) => `There is no ${thing} called ${shortened(String(input))}.`,
    params: { notFound: true },
  });

const SHOWN = 80;
const shortened = (text: string): string => (text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}…`);

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

/** Parses what a caller sent; throws Invalid or NotFound, with one sentence about the first field that is wrong. */
export function parseInput<S extends z.ZodType>(schema: S, input: unknown): z.infer<S> {
  const parsed = schema.safeParse(input);
  if (!parsed.success) throw inputError(parsed.error);
  return parsed.data;
}

/** What the family calls an input that was refused. */
export function inputError(error: z.ZodError): StudioError {
  const [issue] = error.issues;
  if (issue?.code === 'custom' && issue.params?.notFound === true) return new NotFound(issue.message);
  return new Invalid(describeIssues(error), { issues: error.issues.slice(0, 20) });
}

/** One sentence for people from a zod error. */
export function describeIssues(error: {
  issues: readonly { path: readonly PropertyKey[]; message: string }[];
}): string {
  const issue = error.issues[0];
  if (!issue) return 'The input cannot be used.';
  const where = issue.path.length === 0 ? 'The input' : `The field ${issue.path.map(String).join('.')}`;
  const more = error.issues.length > 1 ? ` (and ${error.issues.length - 1} more)` : '';
  const what = issue.message === MISSING ? MISSING : `cannot be used: ${issue.message.replace(/\.$/, '')}`;
  return `${where} ${what}${more}.`;
}
