/** Opens a GGUF file; what is wrong with one is said in a sentence that names it. */
import { open } from 'node:fs/promises';
import type { Llama, LlamaModel } from 'node-llama-cpp';
import { Invalid, NotFound } from '../../core/errors';

export async function openModelFile(llama: Llama, path: string): Promise<LlamaModel> {
  await checkMagic(path);
  try {
    return await llama.loadModel({ modelPath: path, gpuLayers: 0 });
  } catch (error) {
    throw new Invalid(
      `The model file ${path} is damaged or of a kind this version of llama.cpp does not know; fetch or write it again.`,
      {
        cause: error instanceof Error ? error.message : String(error),
      },
    );
  }
}

async function checkMagic(path: string): Promise<void> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new NotFound(`There is no model file at ${path}.`);
    throw new Invalid(`The model file ${path} cannot be read (${error.code ?? error.message}).`);
  });
  try {
    const magic = Buffer.alloc(4);
    const { bytesRead } = await file.read(magic, 0, 4, 0).catch(() => ({ bytesRead: 0 }));
    if (bytesRead < 4 || magic.toString('latin1') !== 'GGUF')
      throw new Invalid(`The file ${path} is no GGUF model; another file was meant, or its download broke off.`);
  } finally {
    await file.close();
  }
}
