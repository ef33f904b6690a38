/**
 * Where the file of a forked child process lies. One answer for the three ways this code runs:
 * TypeScript under tsx, TypeScript under vitest, and the JavaScript bundles in dist/.
 */
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';

export interface ChildEntry {
  /** Absolute path, ready for `fork(file, args, { execArgv })`. */
  file: string;
  execArgv: string[];
}

/**
 * `name` is the base name without extension, `fromUrl` the caller's `import.meta.url`. In TypeScript the child is
 * `<name>.ts` beside the caller and runs under tsx; a bundle (dist/main.js) finds `<name>.js` beside itself in dist/.
 * So base names of child entries are unique over the whole product.
 */
export function childEntry(name: string, fromUrl: string): ChildEntry {
  const caller = new URL(fromUrl);
  if (!caller.pathname.endsWith('.ts')) return { file: fileURLToPath(new URL(`./${name}.js`, caller)), execArgv: [] };
  const loader = pathToFileURL(createRequire(caller).resolve('tsx')).href;
  return { file: fileURLToPath(new URL(`./${name}.ts`, caller)), execArgv: ['--import', loader] };
}
