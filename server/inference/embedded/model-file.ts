/** Opens a GGUF file; what is wrong with one is said in a sentence that names it. */
import { open } from 'node:fs/promises';
import type { Llama, LlamaModel } from 'node-llama-cpp';
import { Invalid, NotFound } from '../../core/errors';

export async function openModelFile(llama: Llama, path: string): Promise<LlamaModel> {
  await checkHead(path);
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

/** Magic, version, number of tensors, number of entries: what a GGUF file begins with. */
const HEAD_BYTES = 24;
/** The fewest bytes an entry (key, type, value) and a tensor (name, shape, type, place) take. */
const ENTRY_BYTES = 13;
const TENSOR_BYTES = 24;

/** A head that promises more than the file can hold keeps llama.cpp reading without end, and is refused before it. */
async function checkHead(path: string): Promise<void> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new NotFound(`There is no model file at ${path}.`);
    throw new Invalid(`The model file ${path} cannot be read (${error.code ?? error.message}).`);
  });
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    const { bytesRead } = await file.read(head, 0, HEAD_BYTES, 0).catch(() => ({ bytesRead: 0 }));
    const { size } = await file.stat();
    const promised = Number(head.readBigUInt64LE(8)) * TENSOR_BYTES + Number(head.readBigUInt64LE(16)) * ENTRY_BYTES;
    if (bytesRead < HEAD_BYTES || head.toString('latin1', 0, 4) !== 'GGUF' || promised > size)
      throw new Invalid(`The file ${path} is no GGUF model; another file was meant, or its download broke off.`);
  } finally {
    await file.close();
  }
}
