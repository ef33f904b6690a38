/**
 * `npm run gpu-check -- URL [--kind K] [--model NAME] [--tokenizer FOLDER] [--key-env NAME]`
 *
 * Runs the check and the conformance suite against an inference server that somebody started at URL, as a rule on a
 * machine with a GPU: exact ids, log-probabilities against scoring, stop strings, constraints, context overflow,
 * cancellation. It samples some thousand tokens and leaves the server as it found it: weights are not updated.
 *
 *   --kind       vllm, sglang, tensorrt-llm, llama-server or openai; found out when absent
 *   --model      the name the server knows its model by, when it serves several
 *   --tokenizer  folder with the model's tokenizer files, for servers that cannot tokenise (trtllm-serve)
 *   --key-env    name of the environment variable that holds the server's key
 *
 * On the machine with the GPU, for example:
 *
 *   VLLM_SERVER_DEV_MODE=1 vllm serve Qwen/Qwen3-0.6B --generation-config vllm --enable-scale-out
 *   npm run gpu-check -- http://127.0.0.1:8000
 *
 * What the server does not offer, and what needs more than one server, is skipped and named so. Exit code 0 when nothing
 * failed. Nothing here is needed by `npm test`.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkNode, ensureInstalled, root, runProgram, stop } from './setup.mjs';

const KINDS = ['vllm', 'sglang', 'tensorrt-llm', 'llama-server', 'openai'];

checkNode();
const { url, kind, model, tokenizer, key } = readArguments();
await ensureInstalled();
// Node warns where one variable wants colours and another none.
const { FORCE_COLOR: _colours, ...inherited } = process.env;
const environment = {
  ...(process.stdout.isTTY ? process.env : { ...inherited, NO_COLOR: '1' }),
  STUDIO_TEST_SERVER_URL: url,
  STUDIO_TEST_SERVER_KIND: kind,
  STUDIO_TEST_SERVER_MODEL: model,
  STUDIO_TEST_SERVER_TOKENIZER: tokenizer,
  STUDIO_TEST_SERVER_KEY: key,
};
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const test = 'server/inference/remote/given-server.test.ts';
// What it prints is the result, so it goes where that of a command goes.
const result = await runProgram(process.execPath, [vitest, 'run', '--reporter=verbose', test], {
  env: environment,
  stdio: ['ignore', 'inherit', 'inherit'],
});
process.exit(result);

function readArguments() {
  const text = { type: 'string', default: '' };
  let parsed;
  try {
    parsed = parseArgs({
      allowPositionals: true,
      options: { kind: text, model: text, tokenizer: text, 'key-env': text },
    });
  } catch (error) {
    stop(error.message, 2);
  }
  const { values, positionals } = parsed;
  if (positionals.length !== 1 || !URL.canParse(positionals[0]))
    stop('Give the address of one running server, for example: npm run gpu-check -- http://127.0.0.1:8000', 2);
  if (values.kind && !KINDS.includes(values.kind))
    stop(`There is no kind ${JSON.stringify(values.kind)}; there are ${KINDS.join(', ')}.`, 2);
  const keyName = values['key-env'];
  const key = keyName ? process.env[keyName] : '';
  if (key === undefined) stop(`The environment variable ${keyName}, which holds the key, is not set.`, 2);
  return { url: positionals[0], kind: values.kind, model: values.model, tokenizer: values.tokenizer, key };
}
