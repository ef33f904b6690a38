/** What the rest of the product holds of the database: the drizzle handle and, inside a transaction, its twin. */

import type { ExtractTablesWithRelations } from 'drizzle-orm';
import type { PostgresJsDatabase, PostgresJsTransaction } from 'drizzle-orm/postgres-js';
import type { Sql } from 'postgres';
import type * as schema from './schema';

export type Db = PostgresJsDatabase<typeof schema>;
export type Tx = PostgresJsTransaction<typeof schema, ExtractTablesWithRelations<typeof schema>>;
/** A query takes either; inside a transaction pass the transaction, never the outer handle. */
export type Queryable = Db | Tx;

export interface Database {
  kind: 'embedded' | 'postgres';
  db: Db;
  /** The raw client, for bulk inserts. */
  sql: Sql;
  close(): Promise<void>;
}
