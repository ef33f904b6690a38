/**
 * A file without a name that sandboxes are handed as an open descriptor: it needs no folder that the sandbox's user can
 * reach, and nothing of it stays behind when the server is killed. Linux only.
 */
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class HandedFile {
  readonly #fd: number;

  constructor(content: string | Uint8Array) {
    const folder = mkdtempSync(join(tmpdir(), 'ts-file-'));
    try {
      const path = join(folder, 'file');
      writeFileSync(path, content, { mode: 0o600 });
      this.#fd = openSync(path, 'r');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  /** A descriptor of its own, at the beginning of the file; the caller closes it. */
  open(): number {
    return openSync(`/proc/self/fd/${this.#fd}`, 'r');
  }

  close(): void {
    closeSync(this.#fd);
  }
}
