/** The validator's own findings in plain words, each to stand behind the name of a field. */
import type { z } from 'zod';

type RawIssue = Parameters<z.core.$ZodErrorMap>[0];

export const MISSING = 'is missing';

const KINDS: Record<string, string> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  tuple: 'a list',
  object: 'an object with fields',
  record: 'an object with fields',
  null: 'null',
  undefined: 'left out',
};

/** What a schema says for itself goes before this. */
export function plainIssue(issue: RawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? MISSING : `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return issue.input === undefined ? MISSING : `must be ${alternatives(issue.values)}`;
    case 'invalid_union':
      return isLeftOut(issue.input, issue.discriminator) ? MISSING : 'is none of the forms that are known';
    case 'too_small': {
      const { origin, minimum, inclusive = true } = issue;
      if (origin === 'string' || origin === 'array')
        return Number(minimum) === 1 ? 'must not be empty' : `must have at least ${counted(minimum, origin)}`;
      return inclusive ? `must be at least ${minimum}` : `must be more than ${minimum}`;
    }
    case 'too_big': {
      const { origin, maximum, inclusive = true } = issue;
      if (origin === 'string' || origin === 'array') return `must have at most ${counted(maximum, origin)}`;
      return inclusive ? `must be at most ${maximum}` : `must be less than ${maximum}`;
    }
    case 'unrecognized_keys':
      return `has fields that are not known: ${issue.keys.slice(0, 5).join(', ')}`;
    default:
      return 'is not in a form that can be used';
  }
}

/** The field by which the forms are told apart. */
function isLeftOut(input: unknown, discriminator: string | undefined): boolean {
  if (input === undefined) return true;
  if (discriminator === undefined || typeof input !== 'object' || input === null) return false;
  return (input as Record<string, unknown>)[discriminator] === undefined;
}

const counted = (count: number | bigint, origin: string): string =>
  origin === 'string' ? `${count} characters` : `${count} entries`;

function alternatives(values: readonly unknown[]): string {
  return values.length === 1 ? String(values[0]) : `one of ${values.map(String).join(', ')}`;
}
