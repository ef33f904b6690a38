import { fork } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { childEntry } from './child-entry';

describe('childEntry', () => {
  it('points at the TypeScript file beside the caller and loads it through tsx', () => {
    const entry = childEntry('child-entry', import.meta.url);
    expect(entry.file).toBe(fileURLToPath(import.meta.url).replace('.test.ts', '.ts'));
    expect(entry.execArgv[0]).toBe('--import');
    expect(entry.execArgv[1]).toMatch(/^file:\/\/.*tsx/);
  });

  it('points into dist when the caller is a bundle, also under a path with spaces and Chinese', () => {
    const bundle = pathToFileURL('/srv/my studio/训练/dist/main.js').href;
    expect(childEntry('pglite-child', bundle)).toEqual({
      file: '/srv/my studio/训练/dist/pglite-child.js',
      execArgv: [],
    });
  });

  it('really starts a TypeScript child under a path with spaces and Chinese', async () => {
    const root = await mkdtemp(join(tmpdir(), 'ts entry 训练 #%-'));
    try {
      await mkdir(join(root, 'server'));
      await symlink(resolve('node_modules'), join(root, 'node_modules'));
      await cp(resolve('package.json'), join(root, 'package.json'));
      const caller = join(root, 'server', 'caller.ts');
      await writeFile(join(root, 'server', 'hello.ts'), "const said: string = 'hello';\nprocess.send?.(said);\n");
      const { file, execArgv } = childEntry('hello', pathToFileURL(caller).href);
      const child = fork(file, [], { execArgv, stdio: 'inherit' });
      const said = await new Promise((done, fail) => {
        child.once('message', done);
        child.once('exit', (code) => fail(new Error(`The child ended with ${code} before it spoke.`)));
      });
      expect(said).toBe('hello');
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  });
});
