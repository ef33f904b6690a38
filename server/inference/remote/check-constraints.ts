/** The item of the checklist about constraints: a word no model writes by itself, asked for in each way. */
import { Invalid, isStudioError } from '../../core/errors';
import type { ConstraintKind } from '../../core/inference';
import type { Constraint } from '../backend';
import { type Probe, sample, type Verdict } from './check-probe';
import { checkConstraint } from './constraint-check';
import type { RawGeneration } from './protocol';
import { quoted } from './server-words';
import type { TokenText } from './token-text';

const WORD = 'zqxzqx';
const CONSTRAINTS: Constraint[] = [
  {
    kind: 'json_schema',
    schema: {
      type: 'object',
      properties: { [WORD]: { enum: [WORD] } },
      required: [WORD],
      additionalProperties: false,
    },
  },
  { kind: 'regex', pattern: '(zqx){2}' },
  { kind: 'grammar', grammar: `root ::= "${WORD}"` },
  { kind: 'choice', choices: [WORD] },
];

type Outcome = { kind: ConstraintKind; heeded: boolean; refused: string | null; wrote: string };

/** Throws Invalid when the server takes a constraint and writes something else. */
export async function checkConstraints(probe: Probe): Promise<Verdict & { kinds: ConstraintKind[] }> {
  const { text } = probe;
  if (!text)
    return {
      kinds: [],
      status: 'warn',
      says: 'Without text of its tokens it could not be seen whether it keeps to constraints.',
    };
  const outcomes = await Promise.all(CONSTRAINTS.map((constraint) => outcomeOf(probe, text, constraint)));
  const heeded = outcomes.filter((outcome) => outcome.heeded);
  const refused = outcomes.filter((outcome) => outcome.refused !== null);
  const ignored = outcomes.filter((outcome) => !outcome.heeded && outcome.refused === null);
  const names = (list: Outcome[]) => list.map(({ kind }) => kind).join(', ');
  const [worst] = ignored;
  if (worst)
    throw new Invalid(
      `It ignores constraints (${names(ignored)}): where only ${worst.kind === 'json_schema' ? 'an object' : quoted(WORD)} was allowed it wrote ${quoted(worst.wrote)}. Start it with structured outputs (guided decoding) enabled, or update it.`,
    );
  const kinds = heeded.map(({ kind }) => kind);
  if (refused.length === 0)
    return { kinds, status: 'pass', says: `It keeps to constraints of every kind: ${names(heeded)}.`, about: WORD };
  const why = `It refuses constraints of the kind ${names(refused)}: ${refused[0]?.refused}`;
  if (kinds.length === 0) return { kinds, status: 'warn', says: `${why} Constrained actions cannot be used with it.` };
  return { kinds, status: 'warn', says: `It keeps to ${names(heeded)}. ${why}` };
}

async function outcomeOf(probe: Probe, text: TokenText, constraint: Constraint): Promise<Outcome> {
  const { kind } = constraint;
  let raw: RawGeneration;
  try {
    raw = await sample(probe, { maxTokens: 48, constraint });
  } catch (error) {
    if (!isStudioError(error) || error.code === 'unavailable' || error.code === 'cancelled') throw error;
    return { kind, heeded: false, refused: error.message, wrote: '' };
  }
  const ids = raw.endTokenSampled ? raw.ids.slice(0, -1) : raw.ids;
  const { bytes } = await text.bytesOf(ids, raw.tokenBytes);
  const heeded = bytes.length > 0 && checkConstraint(constraint, bytes, raw.finish === 'length') !== 'broken';
  return { kind, heeded, refused: null, wrote: new TextDecoder().decode(bytes) };
}
