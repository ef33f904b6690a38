/** `npm run studio -- …`: the command line, set up like `npm start`. Nothing but its result goes to standard output. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { prepare, root } from './setup.mjs';

await prepare();
process.env.NODE_ENV = 'production';
await import(pathToFileURL(join(root, 'dist', 'cli.js')).href);
