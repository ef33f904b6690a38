/** The tool `python`: runs a program, what it prints is the result. */
import type { JsonObject } from '../core/vocabulary';
import type { SandboxOutcome } from '../sandbox/sandbox';
import { droppedLine, lastLine, runInSandbox } from './outcome';
import { argumentCheck } from './schema';
import { BaseTool, type ToolContext, type ToolOutcome, type ToolSchema } from './tool';

const SCHEMA: ToolSchema = {
  name: 'python',
  description:
    'Runs a Python 3 program from the beginning, without network. Print what you want to see: only what the program prints comes back. Nothing is kept from one call to the next.',
  parameters: {
    type: 'object',
    properties: { code: { type: 'string', description: 'The whole program.' } },
    required: ['code'],
    additionalProperties: false,
  },
};
const check = argumentCheck(SCHEMA.parameters);

export class PythonTool extends BaseTool {
  readonly name = SCHEMA.name;
  /** A program may have effects that differ the second time. */
  readonly idempotent = false;

  override getSchema(): ToolSchema {
    return SCHEMA;
  }

  override validate(args: JsonObject): string | null {
    return check(args);
  }

  override execute(args: JsonObject, context: ToolContext): Promise<ToolOutcome> {
    const code = String(args.code);
    return runInSandbox(context, (timeoutMs) => ({ kind: 'python', code, timeoutMs }), describe);
  }

  override formatOutput(outcome: ToolOutcome): string {
    if (outcome.output) return outcome.output;
    if (outcome.error) return outcome.status === 'timeout' ? `[timeout] ${outcome.error}` : `[error] ${outcome.error}`;
    return '[the program printed nothing]';
  }
}

/** Standard output, then standard error marked as such, then how it ended unless that was well. */
function describe(outcome: SandboxOutcome): Pick<ToolOutcome, 'status' | 'output' | 'value' | 'error'> {
  const parts: string[] = [];
  if (outcome.stdout) parts.push(outcome.stdout.trimEnd());
  if (outcome.stderr.trim()) parts.push(`[stderr]\n${outcome.stderr.trimEnd()}`);
  let error: string | null = null;
  if (outcome.status === 'timeout') {
    error = `The program was stopped after ${(outcome.durationMs / 1000).toFixed(1)} seconds, before it had finished.`;
    parts.push(`[timeout] ${error}`);
  } else if (outcome.status === 'error') {
    const end = outcome.exitCode === null ? 'The program did not finish.' : exitSentence(outcome.exitCode);
    error = lastLine(outcome.stderr) ?? end;
    parts.push(`[${end}]`);
  }
  return {
    status: outcome.status,
    output: parts.join('\n') + droppedLine(outcome.droppedBytes),
    value: { exitCode: outcome.exitCode, droppedBytes: outcome.droppedBytes },
    error,
  };
}

/** A negative code is the number of the signal that ended the program. */
function exitSentence(exitCode: number): string {
  return exitCode < 0 ? `ended by signal ${-exitCode}` : `exit code ${exitCode}`;
}
