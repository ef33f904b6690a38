/**
 * A twin by hand, to see the studio with a server of a kind that needs a GPU:
 * `npm run twin -- sglang [--port 30000] [--model FILE] [--ms-per-token 20] [--key KEY]`. Ends with Ctrl-C.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startSglangTwin } from './sglang';
import { startTensorrtTwin } from './tensorrt';

const STARTS = { sglang: startSglangTwin, 'tensorrt-llm': startTensorrtTwin };

const wrong = (why: string): never => {
  process.stderr.write(
    `${why}\nUsage: npm run twin -- sglang|tensorrt-llm [--port NUMBER] [--model FILE.gguf] [--ms-per-token NUMBER] [--key KEY]\n`,
  );
  process.exit(2);
};

function numberOf(name: string, text: string | undefined, most: number): number {
  const value = Number(text ?? 0);
  return Number.isInteger(value) && value >= 0 && value <= most
    ? value
    : wrong(`--${name} must be a whole number from 0 to ${most}.`);
}

function readArguments() {
  try {
    const option = { type: 'string' } as const;
    const options = { port: option, model: option, 'ms-per-token': option, key: option };
    const { values, positionals } = parseArgs({ allowPositionals: true, options });
    const [kind = '', ...more] = positionals;
    if (!Object.hasOwn(STARTS, kind) || more.length > 0) return wrong('Say which server it is the twin of.');
    const modelPath = values.model ?? join('samples', 'models', 'tutorial.gguf');
    if (!existsSync(modelPath)) return wrong(`There is no model file at ${modelPath}.`);
    return {
      kind: kind as keyof typeof STARTS,
      modelPath,
      port: numberOf('port', values.port, 65_535),
      msPerToken: numberOf('ms-per-token', values['ms-per-token'], 60_000),
      key: values.key ?? null,
    };
  } catch (error) {
    return wrong((error as Error).message);
  }
}

const { kind, modelPath, port, msPerToken, key } = readArguments();
const twin = await STARTS[kind]({ modelPath, port, key, faults: { msPerToken }, keepLog: false }).catch((error) =>
  wrong((error as Error).message),
);
process.stdout.write(
  `A twin of ${kind} serves ${modelPath} at ${twin.url}. Add it: npm run studio -- backends add lab ${twin.url}\n`,
);
const end = async (): Promise<void> => {
  await twin.close();
  process.exit(0);
};
process.once('SIGINT', end);
process.once('SIGTERM', end);
