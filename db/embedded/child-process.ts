/** Forking the process of the embedded database. */
import { type ChildProcess, fork } from 'node:child_process';
import { childEntry } from '../../server/child-entry';
import { Unavailable } from '../../server/core/errors';
import type { FromChild, ToChild } from './messages';

/** Its standard output is closed and its standard error piped, so that nothing of it mixes with the studio's own. */
export function forkDatabaseProcess(): ChildProcess {
  const { file, execArgv } = childEntry('pglite-child', import.meta.url);
  return fork(file, [], { execArgv, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
}

/**
 * Sends one message and waits for the first answer that is not a log line. A process that ends first is answered
 * as 'failed', with what it wrote to standard error.
 */
export function ask(
  child: ChildProcess,
  message: ToChild,
  onLog: (line: string) => void = () => {},
): Promise<FromChild> {
  return new Promise((done) => {
    let written = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      written = (written + chunk.toString('utf8')).slice(-8000);
    });
    child.on('message', (answer: FromChild) => {
      if (answer.type === 'log') onLog(answer.line);
      else done(answer);
    });
    const ended = (how: string) =>
      done({ type: 'failed', sentence: null, code: null, message: how, log: written.split('\n').filter(Boolean) });
    child.once('error', (error) => ended(error.message));
    child.once('exit', (code, signal) => ended(`The database process ended (${signal ?? `exit code ${code}`}).`));
    child.send(message, (error) => error && ended(error.message));
  });
}

/** For a piece of work that has a process of its own and ends with it. */
export async function runChild(message: ToChild): Promise<void> {
  const child = forkDatabaseProcess();
  const exited = new Promise<void>((done) => child.once('exit', () => done()));
  const answer = await ask(child, message);
  await exited;
  if (answer.type !== 'failed') return;
  const problem = new Unavailable(answer.sentence ?? `The embedded database cannot be made: ${answer.message}`, {
    log: answer.log,
  });
  throw answer.code
    ? Object.assign(problem, { cause: Object.assign(new Error(answer.message), { code: answer.code }) })
    : problem;
}
