import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const serve = (...args: string[]) =>
  spawn(process.execPath, ['--import', 'tsx', fileURLToPath(new URL('serve.ts', import.meta.url)), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });

it('serves by hand until it is ended', async () => {
  const twin = serve('tensorrt-llm');
  const [line] = await once(twin.stdout, 'data');
  const url = /at (http:\S+)\. Add it/.exec(String(line))?.[1];
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
  expect(data).toMatchObject([{ id: 'tutorial' }]);
  twin.kill('SIGTERM');
  expect((await once(twin, 'exit'))[0]).toBe(0);
});

it.each([
  [['vllm'], 'Say which server it is the twin of.'],
  [['sglang', '--port', 'x'], '--port must be a whole number from 0 to 65535.'],
  [['sglang', '--model', 'none.gguf'], 'There is no model file at none.gguf.'],
])('says what is wrong with %j', async (args, says) => {
  const twin = serve(...args);
  let said = '';
  twin.stderr.on('data', (text) => {
    said += text;
  });
  expect((await once(twin, 'close'))[0]).toBe(2);
  expect(said).toContain(says);
});
