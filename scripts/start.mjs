/** `npm start`: sets everything up when it is stale, then serves the studio in this very process. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { prepare, root } from './setup.mjs';

await prepare();
process.env.NODE_ENV = 'production';
process.env.NEXT_TELEMETRY_DISABLED = '1';
await import(pathToFileURL(join(root, 'dist', 'main.js')).href);
