// A thread starts without the TypeScript loader of its parent; this one brings its own.
import { tsImport } from 'tsx/esm/api';

await tsImport('./shard-worker.ts', import.meta.url);
