/**
 * The JavaScript engine and its agent as one text, so that the sandbox needs two files from the host and no node_modules.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { javascriptAgentSource } from './javascript-agent';
import { ENGINE_THREAD_STACK_MB } from './limits';

export interface JavascriptProgram {
  /** CommonJS text: runs as a file (argument: path of the wasm file) or as a worker thread's source. */
  source: string;
  /** The engine's WebAssembly. */
  wasm: Uint8Array<ArrayBuffer>;
}

/**
 * How a Node process that runs the program is started: with some megabytes less, a deep enough stack, and without
 * reserving address space for each WebAssembly memory (that would pass any limit on it at once).
 */
export function engineNodeFlags(): string[] {
  const flags = [
    '--liftoff-only',
    '--v8-pool-size=1',
    '--max-semi-space-size=1',
    `--stack-size=${ENGINE_THREAD_STACK_MB * 1000}`,
  ];
  // Younger than the oldest Node this runs on.
  const young = '--disable-wasm-trap-handler';
  return process.allowedNodeEnvironmentFlags.has(young) ? [young, ...flags] : flags;
}

let loaded: JavascriptProgram | null = null;

/** Reads the installed engine once. Throws when the package is not installed whole. */
export function javascriptProgram(): JavascriptProgram {
  loaded ??= loadProgram();
  return loaded;
}

function loadProgram(): JavascriptProgram {
  // The engine's packages depend on one another; each is looked up from the one that names it, hoisted or not.
  const fromHere = createRequire(import.meta.url);
  const fromEngine = createRequire(fromHere.resolve('quickjs-emscripten'));
  const corePath = fromEngine.resolve('quickjs-emscripten-core');
  const variantPath = fromEngine.resolve('@jitl/quickjs-wasmfile-release-sync');
  const typesPath = createRequire(corePath).resolve('@jitl/quickjs-ffi-types');
  const build = dirname(variantPath);
  const modules: Record<string, string> = {
    core: corePath,
    types: typesPath,
    ffi: join(build, 'ffi.js'),
    loader: join(build, 'emscripten-module.cjs'),
  };
  const texts = Object.entries(modules).map(
    ([name, path]) =>
      // A line of its own for the closing brace: the text may end in a comment.
      `${JSON.stringify(name)}(module, exports, require, __dirname) {\n${readFileSync(path, 'utf8')}\n}`,
  );
  const source = `'use strict';
const engineModules = {
${texts.join(',\n')}
};
const engineCache = {};
const engineNames = { '@jitl/quickjs-ffi-types': 'types' };
function engineRequire(name) {
  const key = engineNames[name] || name;
  if (!engineModules[key]) return require(name);
  if (!engineCache[key]) {
    engineCache[key] = { exports: {} };
    engineModules[key](engineCache[key], engineCache[key].exports, engineRequire, '/');
  }
  return engineCache[key].exports;
}
const engine = engineRequire('core');
const variant = {
  type: 'sync',
  importFFI: () => Promise.resolve(engineRequire('ffi').QuickJSFFI),
  importModuleLoader: () => Promise.resolve(engineRequire('loader')),
};
${javascriptAgentSource}`;
  return { source, wasm: new Uint8Array(readFileSync(join(build, 'emscripten-module.wasm'))) };
}
