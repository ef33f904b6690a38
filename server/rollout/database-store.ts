/** Keeps sessions in the database; appends of all trajectories share their commits. */
import type { Database } from '../../db/connection';
import type { EventWriter } from '../../db/queries/event-writer';
import { readEvents } from '../../db/queries/events';
import { insertToolOutput } from '../../db/queries/tool-outputs';
import type { Ambient } from '../core/ambient';
import type { SessionStore } from '../harness/session';

export function databaseStore(database: Database, writer: EventWriter, ambient: Ambient): SessionStore {
  return {
    append: (where, events, audit) =>
      writer.append(
        where.sessionId,
        where.runId,
        events,
        audit.map((record) => ({ ...record, id: ambient.newId('aud'), atMs: ambient.now() })),
      ),
    read: (sessionId, range) => readEvents(database.db, { sessionId, ...range }),
    saveOutput: async (sessionId, content) => {
      const id = ambient.newId('out');
      await insertToolOutput(database.db, { id, sessionId, content });
      return id;
    },
  };
}
