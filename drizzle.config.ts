import { defineConfig } from 'drizzle-kit';

/** Only for `npm run db:generate`: the product applies migrations itself (db/migrate.ts). */
export default defineConfig({ dialect: 'postgresql', schema: './db/schema/index.ts', out: './db/migrations' });
