/** What the studio and its database process say to each other over the fork's channel. */
export type ToChild =
  | { type: 'open'; dataDir: string; socketPath: string; studioPid: number }
  /** Makes a new database in `folder`, migrated and without rows, and ends. */
  | { type: 'initialise'; folder: string }
  | { type: 'close' };

export type FromChild =
  | { type: 'ready'; rssBytes: number }
  | { type: 'initialised' }
  | { type: 'in_use'; studioPid: number }
  | { type: 'failed'; sentence: string | null; code: string | null; message: string; log: string[] }
  | { type: 'log'; line: string };
