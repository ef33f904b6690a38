/** Entry of a twin's process: does what its parent says. */
import { startSglangTwin } from './sglang';
import { startTensorrtTwin } from './tensorrt';
import type { Twin } from './twin';
import type { TwinAnswer, TwinCommand } from './twin-process';

let twin: Twin | null = null;

async function obey(command: TwinCommand): Promise<unknown> {
  if (command.do === 'start') {
    const { kind, options } = command.start;
    twin = await (kind === 'sglang' ? startSglangTwin(options) : startTensorrtTwin(options));
    return twin.url;
  }
  if (!twin) throw new Error('The twin has not been started.');
  if (command.do === 'faults') Object.assign(twin.faults, command.faults);
  else if (command.do === 'counters') return twin.counters();
  else await twin[command.do]();
  return null;
}

process.on('message', ({ id, ...command }: { id: number } & TwinCommand) => {
  const answer = (message: TwinAnswer) => void process.send?.(message);
  obey(command as TwinCommand)
    .then((value) => answer({ id, value }))
    .catch((error) => answer({ id, error: String(error) }));
});
// The parent is gone: nobody is left to serve.
process.on('disconnect', () => process.exit(0));
process.on('SIGINT', () => {});
