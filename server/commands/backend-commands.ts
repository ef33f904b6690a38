/** Declares `studio backends`, `weights`, `pause`, `resume` and `score`. A key is never an argument: those are seen by everyone. */
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { Invalid } from '../core/errors';
import { type BackendCheck, REMOTE_KINDS } from '../core/inference';
import { SCORE_TARGETS } from '../core/views';
import { serversWithout, snakeCase, updateWeights } from './backends';
import { checkLines, harmless } from './check-list';
import type { StudioClient } from './client';
import { wholeNumber } from './option-values';
import { score } from './score';

export interface CommandSurroundings {
  withClient(use: (client: StudioClient) => Promise<void>): Promise<void>;
  /** With the studio that runs already; throws Conflict, at once, where none does. */
  withRunningStudio(use: (client: StudioClient) => Promise<void>): Promise<void>;
  print(line: string): void;
  /** For what is no result. */
  tell(line: string): void;
  /** The keys from the variables of those names, or from standard input; each undefined when it is not asked for. */
  readKeys(given: KeySources): Promise<{ key?: string; controlKey?: string }>;
  /** The command ends with this exit code though nothing was thrown. */
  endWith(exitCode: number): void;
  signal: AbortSignal;
}

export interface KeySources {
  keyEnv?: string;
  keyStdin?: boolean;
  controlKeyEnv?: string;
}

export function addBackendCommands(program: Command, around: CommandSurroundings): void {
  const backends = program.command('backends').description('Servers that generate: check, list, add, remove.');
  addCheck(backends, around);
  addList(backends, around);
  addAdd(backends, around);
  addRemove(backends, around);
  addWeights(program, around);
  addPause(program, around);
  addScore(program, around);
}

/** What both `check` and `add` may be told of a server. */
function aboutServer(command: Command): Command {
  return command
    .addOption(new Option('--kind <kind>', 'kind of server').choices(['auto', ...REMOTE_KINDS]).default('auto'))
    .option('--model <name>', 'name under which the model is served (the only one when absent)')
    .option('--tokenizer <folder>', "folder with the model's tokenizer, for servers without routes for text")
    .option('--context-length <n>', 'in tokens, for servers that do not tell', wholeNumber(1))
    .option('--key-env <name>', "environment variable that holds the server's key")
    .option('--key-stdin', "read the server's key from standard input")
    .option('--control-key-env <name>', 'environment variable that holds the key for new weights on trtllm-serve');
}

interface AboutServer extends KeySources {
  kind: (typeof REMOTE_KINDS)[number] | 'auto';
  model?: string;
  tokenizer?: string;
  contextLength?: number;
}

const askedOf = ({ kind, model, tokenizer, contextLength }: AboutServer) => ({
  kind,
  model,
  tokenizer: tokenizer === undefined ? undefined : resolve(tokenizer),
  contextLength,
});

function addCheck(backends: Command, { withClient, readKeys, print, endWith }: CommandSurroundings): void {
  aboutServer(backends.command('check <url>'))
    .description('Find out what a server is and can do. Nothing is stored. Exit code 1 when it cannot be used.')
    .option('--json', 'print one JSON object')
    .action(async (url: string, { json, ...about }: AboutServer & { json?: boolean }) => {
      const keys = await readKeys(about);
      await withClient(async (client) => {
        const check = await client.checkServer({ url, ...askedOf(about), ...keys });
        if (json) print(JSON.stringify(snakeCase(check)));
        else for (const line of checkLines(check)) print(line);
        if (!check.ok) endWith(1);
      });
    });
}

function addList(backends: Command, { withClient, print }: CommandSurroundings): void {
  backends
    .command('list')
    .description('The backends, the default one first, and whether each answers now.')
    .option('--json', 'print one JSON array')
    .action(async ({ json }: { json?: boolean }) => {
      await withClient(async (client) => {
        const all = await client.listBackends();
        if (json) return print(JSON.stringify(snakeCase(all)));
        for (const { name, kind, modelName, isDefault, health, urls } of all) {
          const where = urls.length > 0 ? ` at ${urls.join(', ')}` : '';
          const what = `${kind}${where}, model ${modelName ?? 'unknown'}`;
          print(harmless(`${name}${isDefault ? ' (default)' : ''}: ${what}. ${health.message}`));
        }
      });
    });
}

function addAdd(backends: Command, around: CommandSurroundings): void {
  aboutServer(backends.command('add <name> <urls...>'))
    .description(
      'Add a backend on servers that serve the same model, or change what it consists of. They are checked first.',
    )
    .option('--max-in-flight <n>', 'requests in flight with each server', wholeNumber(1))
    .option('--default', 'make it the default backend')
    .option('--unchecked', 'save it without asking the servers')
    .option('--json', 'print one JSON object')
    .action(async (name: string, urls: string[], given: AboutServer & AddOptions) => {
      const { default: isDefault, unchecked = false, maxInFlight, json, ...about } = given;
      const keys = await around.readKeys(about);
      await around.withClient(async (client) => {
        const wanted = { name, urls, ...askedOf(about), ...keys, isDefault, unchecked, maxInFlight };
        const saved = await client.addBackend(wanted);
        for (const line of losses(saved.checks)) around.tell(line);
        around.print(json ? JSON.stringify(snakeCase(saved)) : name);
      });
    });
}

function addRemove(backends: Command, { withClient, print }: CommandSurroundings): void {
  backends
    .command('remove <name>')
    .description('Forget a backend that no run was made with, and its keys.')
    .action(async (name: string) => {
      await withClient(async (client) => {
        await client.removeBackend(name);
        print(name);
      });
    });
}

interface AddOptions {
  default?: boolean;
  unchecked?: boolean;
  maxInFlight?: number;
  json?: boolean;
}

/** What an added server lacks, once where all say the same. */
function losses(checks: readonly BackendCheck[]): string[] {
  const warned = checks.map((check) => ({ ...check, items: check.items.filter(({ status }) => status === 'warn') }));
  return [...new Set(warned.flatMap((check) => checkLines(check).filter((line) => line.startsWith('!'))))];
}

function addWeights(program: Command, { withClient, print, tell, signal }: CommandSurroundings): void {
  program
    .command('weights <backend>')
    .description('Give a backend new weights while it serves, and wait for it.')
    .addOption(new Option('--checkpoint <folder>', "on the server's machine").conflicts(['lora', 'external']))
    .addOption(new Option('--lora <folder>', "adapter, on the server's machine").conflicts(['external']))
    .option('--external', 'the trainer moves the tensors itself: pause, flush, stamp the version, resume')
    .requiredOption('--version <label>', 'label of the new weights')
    .option('--interrupt', 'stop the generations under way and go on with the new weights, instead of waiting for them')
    .option('--json', 'print one JSON object')
    .action(async (name: string, { checkpoint, lora, external, version, interrupt, json }: WeightOptions) => {
      const source =
        checkpoint !== undefined
          ? ({ kind: 'checkpoint', path: checkpoint } as const)
          : lora !== undefined
            ? ({ kind: 'lora', path: lora } as const)
            : external
              ? ({ kind: 'external' } as const)
              : null;
      if (!source) throw new Invalid('Say where the new weights come from: --checkpoint, --lora or --external.');
      await withClient(async (client) => {
        const inFlight = interrupt ? 'interrupt' : 'drain';
        const update = await updateWeights(client, { name, source, version, inFlight }, signal);
        const without = await serversWithout(client, name, update.version);
        for (const { url, reason } of without) tell(`${url} does not have ${update.version} yet: ${reason}`);
        print(json ? JSON.stringify(snakeCase({ ...update, without })) : `${name} serves ${update.version}`);
      });
    });
}

interface WeightOptions {
  checkpoint?: string;
  lora?: string;
  external?: boolean;
  version: string;
  interrupt?: boolean;
  json?: boolean;
}

/** The studio that sends requests is the one that holds them back or lets them go. */
function addPause(program: Command, { withRunningStudio, print }: CommandSurroundings): void {
  program
    .command('pause <backend>')
    .description('Let a backend take no more requests; they wait. Generations under way end first.')
    .action(async (name: string) => {
      await withRunningStudio(async (client) => {
        await client.pauseBackend(name);
        print(name);
      });
    });
  program
    .command('resume <backend>')
    .description('Let a paused backend go on.')
    .action(async (name: string) => {
      await withRunningStudio(async (client) => {
        await client.resumeBackend(name);
        print(name);
      });
    });
}

function addScore(program: Command, { withClient, print, signal }: CommandSurroundings): void {
  program
    .command('score <run-id>')
    .description('Fill the ref or policy log-probabilities of a run under the weights of a backend.')
    .addOption(new Option('--as <column>', 'which column').choices([...SCORE_TARGETS]).makeOptionMandatory())
    .requiredOption('--backend <name>', 'backend that scores')
    .option('--alternatives <k>', 'keep the likeliest tokens of each position', wholeNumber(0, 5))
    .option('--entropy', 'keep the entropy of each position')
    .option('--again', 'also what the same weights have scored before')
    .option('--json', 'print one JSON object')
    .action(async (runId: string, { json, ...request }: ScoreOptions) => {
      await withClient(async (client) => {
        const job = await score(client, { runId, ...request }, signal);
        print(
          json
            ? JSON.stringify(snakeCase(job))
            : `${job.scored} token sequences scored, ${job.alreadyScored} had been, ${job.approximate} approximate left out`,
        );
      });
    });
}

interface ScoreOptions {
  as: (typeof SCORE_TARGETS)[number];
  backend: string;
  alternatives?: number;
  entropy?: boolean;
  again?: boolean;
  json?: boolean;
}
