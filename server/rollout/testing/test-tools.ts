/** Tools for tests of the one way a call goes: small, in this process, each with one habit. */
import type { JsonObject } from '../../core/vocabulary';
import { createToolRegistry, type ToolRegistry } from '../../tools/registry';
import { argumentCheck } from '../../tools/schema';
import { BaseTool, type ToolContext, type ToolOutcome, type ToolSchema } from '../../tools/tool';

const success = (output: string): ToolOutcome => ({
  status: 'success',
  output,
  value: output,
  error: null,
  sandboxLevel: null,
});

export class TestTool extends BaseTool {
  /** The arguments of every execution, in order. */
  readonly ran: JsonObject[] = [];
  readonly #check: (args: JsonObject) => string | null;

  constructor(
    readonly name: string,
    private readonly parameters: JsonObject,
    private readonly run: (args: JsonObject, context: ToolContext) => Promise<string> | string,
    readonly idempotent = true,
  ) {
    super();
    this.#check = argumentCheck(parameters);
  }

  override getSchema(): ToolSchema {
    return { name: this.name, description: `The tool ${this.name}.`, parameters: this.parameters };
  }

  override validate(args: JsonObject): string | null {
    return this.#check(args);
  }

  override async execute(args: JsonObject, context: ToolContext): Promise<ToolOutcome> {
    this.ran.push(args);
    return success(await this.run(args, context));
  }

  override formatOutput(outcome: ToolOutcome): string {
    return outcome.status === 'success' ? outcome.output : `[${outcome.status}] ${outcome.error}`;
  }
}

/** Called `wait`: every call lasts until `release`. */
export function waitingTool({ idempotent = true } = {}): { wait: TestTool; release: () => void } {
  let release = (): void => undefined;
  const held = new Promise<void>((done) => {
    release = done;
  });
  const run = async () => {
    await held;
    return 'waited';
  };
  return { wait: new TestTool('wait', { type: 'object' }, run, idempotent), release };
}

const number = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false };
const text = {
  type: 'object',
  properties: { text: { type: 'string' } },
  required: ['text'],
  additionalProperties: false,
};

export class TestTools {
  /** How many hanging calls were told to stop. */
  stopped = 0;
  /** What `tell` says, whatever it is asked. */
  told = '';
  /** Its result depends on nothing but n. */
  readonly double = new TestTool('double', number, ({ n }) => String(2 * Number(n)));
  /** Must not run twice. */
  readonly pay = new TestTool('pay', number, ({ n }) => `paid ${n}`, false);
  readonly say = new TestTool('say', text, (args) => String(args.text));
  readonly tell = new TestTool('tell', number, () => this.told);
  readonly crash = new TestTool('crash', number, () => {
    throw new Error('the tool broke');
  });
  readonly hang = new TestTool('hang', number, (_, { signal }) => {
    signal.addEventListener('abort', () => {
      this.stopped++;
    });
    return new Promise<string>(() => undefined);
  });
  readonly registry: ToolRegistry;

  constructor(more: readonly BaseTool[] = []) {
    this.registry = createToolRegistry([this.double, this.pay, this.say, this.tell, this.crash, this.hang, ...more]);
  }
}
