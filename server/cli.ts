/** The command line: `studio rollout | export | score | loss | skill | dataset | backend(s) | weights | sign-in …`. Results on standard output, the rest on standard error. */
import { access, readFile } from 'node:fs/promises';
import { basename, extname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, CommanderError, Option } from 'commander';
import { addBackendCommands, type KeySources } from './commands/backend-commands';
import { harmless } from './commands/check-list';
import { answers, connect, type StudioClient } from './commands/client';
import { exportRun, leftOut } from './commands/export';
import { addLossOptions, runLoss } from './commands/loss';
import { decimal, wholeNumber } from './commands/option-values';
import { rollout } from './commands/rollout';
import { systemAmbient } from './core/ambient';
import { Cancelled, Conflict, ERROR_EDGES, Invalid, isStudioError } from './core/errors';
import { type Environment, parseEnvironment } from './env';
import { createLogger } from './observability/logger';
import { readServerFile } from './server-file';
import { startStudio } from './studio';

/** The folder of package.json: one above server/ and one above dist/. */
const packageRoot = fileURLToPath(new URL('..', import.meta.url));
const stopping = new AbortController();
/** A stop that takes longer than this has met something that hangs. */
const STOP_LIMIT_MS = 30_000;

const program = new Command('studio')
  .description(
    'Trajectory Studio from the command line. It goes through the studio that runs on the data folder, or starts one for as long as the command takes.',
  )
  .showHelpAfterError('(studio --help shows the commands)')
  .exitOverride();

program
  .command('rollout')
  .description('Start a run, wait for it, print what came of it.')
  .requiredOption('--skill <name>', 'skill to use, its newest version')
  .requiredOption('--dataset <name>', 'dataset to take tasks from')
  .option('--backend <name>', 'inference backend (the default one when absent)')
  .option('--skill-version <n>', 'a version of the skill', wholeNumber(1))
  .option('--group-size <n>', 'trajectories a task', wholeNumber(1), 8)
  .option('--tasks <n>', 'how many tasks of the dataset (all when absent)', wholeNumber(1))
  .option('--seed <n>', 'seed of the run', wholeNumber(0))
  .option('--name <name>', 'name of the run')
  .option('--temperature <t>', "sampling temperature instead of the skill's", decimal)
  .option('--judge <backend>', 'backend that judges reasoning_quality')
  .option('--max-staleness <k>', 'most weight updates a trajectory may fall behind', wholeNumber(0, 1000))
  .addOption(new Option('--stale <what>', 'begin an older trajectory anew, or drop it').choices(['redo', 'drop']))
  .option('--drop-no-signal', 'leave groups whose advantages are all 0 out of exports')
  .option('--json', 'print one JSON object')
  .action(async ({ json, ...request }) => {
    if (request.stale !== undefined && request.maxStaleness === undefined)
      throw new Invalid('--stale says what becomes of old trajectories; --max-staleness says how old. Give both.');
    await withClient(async (client) => {
      const { report } = await rollout(client, request, { signal: stopping.signal, tell });
      if (json) print(JSON.stringify(report));
      else
        print(
          `${report.run_id}: ${report.completed} of ${report.trajectories} trajectories completed, mean reward ${report.mean_reward?.toFixed(3) ?? '–'}, ${report.seconds} s`,
        );
      if (client.url) process.stderr.write(`Open ${client.url}/runs/${report.run_id}\n`);
      // A run of which nothing came is no success for a script.
      if (report.completed === 0) process.exitCode = 1;
    });
  });

program
  .command('cancel <run-id>')
  .description('Cancel a run: what waits ends at once, what runs is stopped.')
  .action(async (runId: string) => {
    await withClient(async (client) => {
      await client.cancelRun(runId);
      print(runId);
    });
  });

program
  .command('export <run-id>')
  .description('Write the token sequences of a run to a file.')
  .requiredOption('--out <file>', 'where to')
  .option('--format <format>', 'jsonl', 'jsonl')
  .option('--all', 'also approximate sequences and log-probabilities that are not raw')
  .option('--json', 'print one JSON object')
  .action(async (runId: string, { out, format, json, all = false }) => {
    if (format !== 'jsonl')
      throw new Invalid(`The format ${JSON.stringify(format)} is not known; this version writes jsonl.`);
    await withClient(async (client) => {
      const { lines, bytes } = await exportRun(client, runId, { out, all });
      for (const sentence of await leftOut(client, runId, all)) tell(sentence);
      print(
        json
          ? JSON.stringify({ run_id: runId, file: out, lines, bytes })
          : `${lines} token sequences, ${bytes} bytes, in ${out}`,
      );
    });
  });

addLossOptions(program.command('loss <file>').description('Advantages and policy loss of a file of token sequences.'))
  .option('--json', 'print one JSON object')
  .action(async (file: string, { json, ...options }) => {
    const report = await runLoss(file, options);
    const { advantages, ...figures } = report;
    print(
      json
        ? JSON.stringify(report)
        : `${Object.entries(figures)
            .map(([name, value]) => `${name} ${value}`)
            .join('\n')}\ntrajectories ${Object.keys(advantages).length}`,
    );
  });

program
  .command('skill <file>')
  .description('Save a skill from a YAML file as a new version.')
  .action(async (file: string) => {
    const yaml = await readTextFile(file);
    await withClient(async (client) => {
      const { name, version } = await client.saveSkill(yaml);
      print(`${name} version ${version}`);
    });
  });

program
  .command('dataset <file>')
  .description('Import a dataset from a JSON Lines file.')
  .option('--name <name>', "its name (the file's, when absent)")
  .action(async (file: string, { name }) => {
    const jsonl = await readTextFile(file);
    await withClient(async (client) => {
      const imported = await client.importDataset(name ?? basename(file, extname(file)), jsonl);
      print(`${imported.name}: ${imported.taskCount} tasks`);
    });
  });

program
  .command('backend <name>')
  .description('Add an embedded backend for a GGUF file.')
  .requiredOption('--model <file>', 'the GGUF file')
  .action(async (name: string, { model }) => {
    await access(model).catch((cause) => {
      throw new Invalid(`There is no file at ${model} that can be read.`, {}, { cause });
    });
    await withClient(async (client) => {
      await client.addBackend({ name, kind: 'embedded', settings: { modelPath: resolve(model) } });
      print(name);
    });
  });

addBackendCommands(program, {
  withClient,
  withRunningStudio,
  print,
  tell,
  readKeys,
  endWith: (exitCode) => {
    process.exitCode = exitCode;
  },
  signal: stopping.signal,
});

program
  .command('sign-in')
  .description('Print an address that signs one person in to the running studio, once.')
  .option('--next <path>', 'page to open afterwards')
  .action(async ({ next }) => {
    await withRunningStudio(async (client) => print(await client.signInAddress(next)));
  });

// Who reads only the first lines (`| head`) has closed the pipe: the work goes on to its end, and nobody is told more.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    if (stopping.signal.aborted) process.exit(130);
    stopping.abort();
    // What is open has a while to close, and no longer.
    setTimeout(() => process.exit(130), STOP_LIMIT_MS).unref();
  });

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = explain(error);
}
// All that was to be kept is: a request still under way, or a part that did not close, must not keep the process. What was
// printed goes out first.
await Promise.all([process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write('', done))));
process.exit();

async function withClient(use: (client: StudioClient) => Promise<void>): Promise<void> {
  const client = await openClient(parseEnvironment(process.env));
  try {
    await untilStopped(use(client));
  } finally {
    await client.close();
  }
}

/** For what only a studio that lasts can do: none is started for it. */
async function withRunningStudio(use: (client: StudioClient) => Promise<void>): Promise<void> {
  const running = await findServer(parseEnvironment(process.env).dataDir);
  if (!running) throw new Conflict('No studio runs on this data folder. Start one with: npm start');
  await untilStopped(use(connect({ ...running, lasting: true })));
}

/** Work that ends by itself when asked to has a moment for it and says more; what waits for an answer is left. */
async function untilStopped(work: Promise<void>): Promise<void> {
  const stopped = new Promise<never>((_resolve, reject) => {
    stopping.signal.addEventListener('abort', () => {
      setTimeout(() => reject(new Cancelled('Stopped.')), 1_000).unref();
    });
  });
  await Promise.race([work, stopped]);
}

/** The studio that holds the data folder, or one of this command's own. */
async function openClient(environment: Environment): Promise<StudioClient> {
  const running = await findServer(environment.dataDir);
  if (running) return connect({ ...running, lasting: true });
  try {
    const studio = await startStudio(
      {
        environment: { ...environment, host: '127.0.0.1', port: 0, publicUrl: null },
        ambient: systemAmbient(),
        logger: createLogger(environment.logLevel),
        packageRoot,
        development: false,
        withPages: false,
        onFatal: (error) => process.exit(explain(error)),
      },
      stopping.signal,
    );
    const own = await readServerFile(environment.dataDir);
    if (!own) throw new Conflict(`The file server.json in ${environment.dataDir} is gone. Run the command again.`);
    return connect({ ...own, lasting: false }, () => studio.stop());
  } catch (error) {
    // Another command or a studio may just be opening the same folder: then it is the one to ask.
    if (!(error instanceof Conflict)) throw error;
    for (let waited = 0; waited < 20_000 && !stopping.signal.aborted; waited += 500) {
      await new Promise((done) => setTimeout(done, 500));
      const other = await findServer(environment.dataDir);
      if (other) return connect({ ...other, lasting: true });
    }
    throw error;
  }
}

async function findServer(dataDir: string): ReturnType<typeof readServerFile> {
  const file = await readServerFile(dataDir);
  return file && (await answers(file.url)) ? file : null;
}

async function readTextFile(file: string): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (cause) {
    if (cause instanceof TypeError) throw new Invalid(`${file} is not UTF-8 text. Save it as UTF-8.`, {}, { cause });
    throw new Invalid(
      `${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}.`,
      {},
      { cause },
    );
  }
}

async function readKeys({ keyEnv, keyStdin, controlKeyEnv }: KeySources) {
  if (keyEnv !== undefined && keyStdin) throw new Invalid('Give the key by --key-env or by --key-stdin, not by both.');
  return {
    controlKey: keyFromEnvironment('--control-key-env', controlKeyEnv),
    key: keyStdin ? await keyFromStandardInput() : keyFromEnvironment('--key-env', keyEnv),
  };
}

/** Without blanks around it; the name of the variable may be told, its text never. */
function keyFromEnvironment(option: string, name: string | undefined): string | undefined {
  if (name === undefined) return undefined;
  const key = process.env[name]?.trim();
  if (!key) throw new Invalid(`The environment variable ${name} that ${option} names is empty or not set.`);
  return key;
}

async function keyFromStandardInput(): Promise<string> {
  process.stdin.setEncoding('utf8');
  let text = '';
  for await (const part of process.stdin) text += part;
  const key = text.trim();
  if (!key) throw new Invalid('Standard input, where --key-stdin reads the key, is empty.');
  return key;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** What is no result. It may hold words of a server or a model, which are made harmless. */
function tell(text: string): void {
  process.stderr.write(`${text.split('\n').map(harmless).join('\n')}\n`);
}

/** The error as one sentence; returns the exit code it means. */
function explain(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  tell(error instanceof Error ? error.message : String(error));
  return isStudioError(error) ? ERROR_EDGES[error.code].exit : 1;
}
