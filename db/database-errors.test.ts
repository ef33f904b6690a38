import { beforeAll, describe, expect, it } from 'vitest';
import { Conflict, Unavailable } from '../server/core/errors';
import { DatabaseFailure, describeDatabaseUrl, folderError, serverOpenError, toStudioError } from './database-errors';
import { users } from './schema';
import { describeOnBothDatabases, type TestDatabase } from './testing/database';

const system = (code: string) => Object.assign(new Error(`${code}: something of the system`), { code });

describe('the words for a database failure', () => {
  it('name the folder and what to do', () => {
    expect(folderError(system('ENOSPC'), '/data').message).toMatch(/\/data is full\. Free space/);
    expect(folderError(system('EROFS'), '/data').message).toMatch(/\/data cannot be written \(EROFS\)/);
    expect(folderError(system('EIO'), '/data')).toBeInstanceOf(Unavailable);
  });

  it('name the server and never the user or password', () => {
    const url = 'postgres://ada:p%40ss@db.example/my%20studio';
    expect(describeDatabaseUrl(url)).toBe('db.example:5432/my studio');
    for (const code of ['ECONNREFUSED', 'ENOTFOUND', 'CONNECT_TIMEOUT', '28P01', '3D000', '42501']) {
      const error = serverOpenError(system(code), url);
      expect(String(error)).toContain('db.example:5432/my studio');
      expect(String(error)).not.toMatch(/ada|p%40ss|p@ss/);
    }
  });

  it('tell a full disk, a lost connection and a clash of writers apart', () => {
    expect(toStudioError(system('53100'))).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/full/),
    });
    expect(toStudioError(system('57P01'))).toMatchObject({ code: 'unavailable' });
    expect(toStudioError(system('CONNECTION_CLOSED'))).toBeInstanceOf(Unavailable);
    expect(toStudioError(system('40P01'))).toBeInstanceOf(Conflict);
    const other = new TypeError('not of the database');
    expect(toStudioError(other)).toBe(other);
  });
});

describeOnBothDatabases('a statement the database refuses', (open) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await open();
  });

  it('is reported without the values it carried', async () => {
    const row = { id: 'u', name: 'confidential', role: 'viewer' as const, createdAtMs: 1 };
    await database.db.insert(users).values(row);
    const error = await database.db
      .insert(users)
      .values(row)
      .catch((e: unknown) => toStudioError(e));
    expect(error).toBeInstanceOf(DatabaseFailure);
    const shown = error instanceof Error ? `${error.message} ${error.stack} ${String(error.cause)}` : '';
    expect(shown).toContain('duplicate key');
    expect(shown).not.toContain('confidential');
  });
});
