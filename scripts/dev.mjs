/** `npm run dev`: the studio from its sources, pages rebuilt as they are edited. The server itself is restarted by hand. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { checkNode, ensureInstalled, root } from './setup.mjs';

checkNode();
await ensureInstalled();
const child = spawn(process.execPath, ['--import', 'tsx', join(root, 'server', 'main.ts')], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, NODE_ENV: 'development', NEXT_TELEMETRY_DISABLED: '1' },
});
// The terminal sends Ctrl-C to both; the studio ends by itself and this waits for it.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('exit', (code) => process.exit(code ?? 1));
