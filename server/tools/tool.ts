/** A tool the model can call. One file a tool; the registry knows them by name. */
import type { Json, JsonObject, SandboxLevel, ToolStatus } from '../core/vocabulary';
import type { SandboxPool } from '../sandbox/sandbox';

export interface ToolSchema {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  parameters: JsonObject;
}

export interface ToolContext {
  sandboxes: SandboxPool;
  /** The skill's wish. */
  sandbox: { level: SandboxLevel; accept: readonly SandboxLevel[] };
  /** The task's metadata: what the tool knows and the model does not. */
  taskMetadata: JsonObject;
  signal: AbortSignal;
  /** Milliseconds left of the call's limit (90 s by default). */
  timeoutMs: number;
}

/** What came out, before it is formatted for the model. */
export interface ToolOutcome {
  status: ToolStatus;
  output: string;
  value: Json;
  error: string | null;
  sandboxLevel: SandboxLevel | null;
}

export abstract class BaseTool {
  abstract readonly name: string;
  /** Safe to run again after a crash in the middle. */
  abstract readonly idempotent: boolean;
  abstract getSchema(): ToolSchema;
  /** Null when the arguments fit the schema, else a sentence with the path and the expected type. No coercion. */
  abstract validate(args: JsonObject): string | null;
  /** Never rejects for what the call did; a rejected promise is a fault of the tool and ends as status 'error'. */
  abstract execute(args: JsonObject, context: ToolContext): Promise<ToolOutcome>;
  /** Text the model sees; truncation by tokens happens after this, in the harness. */
  abstract formatOutput(outcome: ToolOutcome): string;
  /** Every resource the call touches besides tool://NAME. */
  resources(_args: JsonObject): string[] {
    return [];
  }
}
