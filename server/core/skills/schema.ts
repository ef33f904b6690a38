/** The keys of a skill's YAML, each with the words for what is wrong with it. Unknown keys at the top are kept. */
import { z } from 'zod';
import { ACTION_FORMATS } from '../actions/format';
import { PERMISSION_LEVELS, SANDBOX_LEVELS } from '../vocabulary';

interface RawIssue {
  readonly code?: string;
  readonly input?: unknown;
  readonly keys?: unknown;
}

const must = (what: string) => ({
  error: (issue: RawIssue) => {
    if (issue.code === 'unrecognized_keys' && Array.isArray(issue.keys))
      return `has the unknown key ${issue.keys.join(', ')}`;
    return issue.input === undefined ? 'is missing' : `must be ${what}`;
  },
});

const text = z.string(must('text')).min(1, 'must not be empty');
const texts = (what: string) => z.array(text, must(what));
const fraction = z.number(must('a number from 0 to 1')).min(0, 'must be at least 0').max(1, 'must be at most 1');
const whole = (least: number, most: number) =>
  z.int(must('a whole number')).min(least, `must be at least ${least}`).max(most, `must be at most ${most}`);
const oneOf = <const T extends readonly [string, ...string[]]>(words: T) =>
  z.enum(words, must(`one of ${words.join(', ')}`));

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const UNNAMEABLE = /[\u0000-\u001f\u007f/\\]/;

const name = text
  .max(120, 'must not be longer than 120 characters')
  .refine(
    (value) => !UNNAMEABLE.test(value) && value === value.trim(),
    'must not hold slashes, control characters or spaces at its ends',
  );

const rule = z.strictObject(
  {
    resource: text,
    level: oneOf(PERMISSION_LEVELS),
    actions: texts('a list of actions').min(1, 'must name an action').default(['execute']),
    conditions: z.record(z.string(), z.json(), must('a mapping of conditions')).default({}),
  },
  must('a mapping with resource and level'),
);

const timestamp = z.iso.datetime({ offset: true, ...must('a time like 2027-01-31T12:00:00Z') });

export const skillSchema = z.looseObject(
  {
    skill_name: name,
    description: z.string(must('text')).default(''),
    available_tools: texts('a list of tool names'),
    max_rounds: whole(1, 10_000),
    answer_format: z.strictObject(
      { required_fields: texts('a list of field names') },
      must('a mapping with required_fields'),
    ),
    audit_rules: z
      .array(
        z.strictObject({ field: text, pattern: z.string(must('text')) }, must('a mapping with field and pattern')),
        must('a list of rules'),
      )
      .default([]),
    reward_weights: z.record(
      z.string(),
      z.number(must('a number')).min(0, 'must be at least 0'),
      must('a mapping of scorers to weights'),
    ),
    instructions: z.string(must('text')).default(''),
    action_format: oneOf([...ACTION_FORMATS, 'auto']).default('react'),
    constrain_actions: z.boolean(must('true or false')).default(false),
    sampling: z
      .strictObject(
        {
          temperature: z.number(must('a number')).min(0, 'must be at least 0').default(1),
          // What a sampler can use: keeping nothing, or only the impossible, is no distribution.
          top_p: fraction.refine((p) => p > 0, 'must be more than 0').default(1),
          top_k: whole(0, 1_000_000).default(0),
          min_p: fraction.refine((p) => p < 1, 'must be less than 1').default(0),
          max_tokens_per_turn: whole(1, 1_000_000).default(512),
        },
        must('a mapping'),
      )
      .prefault({}),
    stop: texts('a list of stop strings').optional(),
    sandbox: z
      .strictObject(
        {
          level: oneOf(SANDBOX_LEVELS).default('process'),
          accept: z.array(oneOf(SANDBOX_LEVELS), must('a list of sandbox levels')).optional(),
        },
        must('a mapping with level and accept'),
      )
      .prefault({}),
    permissions: z
      .strictObject(
        {
          default_level: oneOf(PERMISSION_LEVELS).default('ask_first'),
          rules: z.array(rule, must('a list of rules')).default([]),
          expires_at: timestamp.optional(),
        },
        must('a mapping with default_level and rules'),
      )
      .prefault({}),
    max_observation_tokens: whole(1, 1_000_000).default(1024),
    deadline_ms: whole(1, 2 ** 31 - 1).default(600_000),
  },
  must('a mapping of keys to values'),
);

export type SkillYaml = z.infer<typeof skillSchema>;
