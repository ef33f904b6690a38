/** The tool `probe` of the tutorial: asks whether a hidden number is higher or lower. The number is in the task's metadata. */
import type { JsonObject } from '../core/vocabulary';
import type { SandboxOutcome } from '../sandbox/sandbox';
import { lastLine, runInSandbox } from './outcome';
import { argumentCheck } from './schema';
import { BaseTool, type ToolContext, type ToolOutcome, type ToolSchema } from './tool';

const SCHEMA: ToolSchema = {
  name: 'probe',
  description: 'Compares n with the hidden number: higher (the hidden number is higher than n), lower, or found.',
  parameters: {
    type: 'object',
    properties: { n: { type: 'integer', description: 'Your guess.' } },
    required: ['n'],
    additionalProperties: false,
  },
};
const check = argumentCheck(SCHEMA.parameters);

/** Runs in the sandbox; `env.secret` is what the tool knows and the model does not. */
const SOURCE = `
function main(args, env) {
  if (env.secret > args.n) return 'higher';
  if (env.secret < args.n) return 'lower';
  return 'found';
}
`;
const HINTS = ['higher', 'lower', 'found'];

export class ProbeTool extends BaseTool {
  readonly name = SCHEMA.name;
  readonly idempotent = true;

  override getSchema(): ToolSchema {
    return SCHEMA;
  }

  override validate(args: JsonObject): string | null {
    return check(args);
  }

  override async execute(args: JsonObject, context: ToolContext): Promise<ToolOutcome> {
    const { secret } = context.taskMetadata;
    if (typeof secret !== 'number' || !Number.isInteger(secret)) {
      const error = 'The task has no hidden number: its metadata needs "secret", an integer.';
      return { status: 'error', output: '', value: null, error, sandboxLevel: null };
    }
    return runInSandbox(
      context,
      (timeoutMs) => ({ kind: 'javascript', source: SOURCE, args, env: { secret }, timeoutMs }),
      describe,
    );
  }

  /** The hint alone: the model is trained on these three words. */
  override formatOutput(outcome: ToolOutcome): string {
    return outcome.status === 'success' ? outcome.output : `[${outcome.status}] ${outcome.error ?? outcome.output}`;
  }
}

function describe(outcome: SandboxOutcome): Pick<ToolOutcome, 'status' | 'output' | 'value' | 'error'> {
  const { status, value } = outcome;
  if (status === 'success' && typeof value === 'string' && HINTS.includes(value))
    return { status, output: value, value, error: null };
  const error = lastLine(outcome.stderr) ?? 'The comparison gave no hint.';
  return { status: status === 'success' ? 'error' : status, output: outcome.stderr, value: null, error };
}
