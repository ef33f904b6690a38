/** `npm run twin -- sglang|tensorrt-llm`: see `server/inference/testing/twin/serve.ts`. */
import { join } from 'node:path';
import { checkNode, ensureInstalled, root, runProgram } from './setup.mjs';

checkNode();
await ensureInstalled();
const serve = join(root, 'server', 'inference', 'testing', 'twin', 'serve.ts');
process.exit(await runProgram(process.execPath, ['--import', 'tsx', serve, ...process.argv.slice(2)]));
