/** Compiles kernels.as to WebAssembly. Takes about a second; the same source gives the same bytes. */
import { readFile } from 'node:fs/promises';
import asc from 'assemblyscript/asc';

const SOURCE = new URL('./kernels.as', import.meta.url);

/** Throws with the compiler's own words when the source does not compile. */
export async function compileKernels(): Promise<Uint8Array<ArrayBuffer>> {
  const source = await readFile(SOURCE, 'utf8');
  const { error, binary, stderr } = await asc.compileString(source, {
    optimizeLevel: 3,
    enable: ['simd'],
    runtime: 'stub',
    importMemory: true,
    noAssert: true,
    use: ['abort='],
  });
  if (error || !binary)
    throw new Error(`The training kernels do not compile: ${error?.message ?? ''}\n${stderr.toString()}`);
  return new Uint8Array(binary);
}
