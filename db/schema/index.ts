/** Everything drizzle needs to know of the database, for the client and for generated migrations. */
export * from './catalog';
export * from './inference';
export * from './people';
export * from './rollout';
