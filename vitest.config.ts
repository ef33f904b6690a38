import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  resolve: { alias: { '@': fileURLToPath(new URL('.', import.meta.url)).replace(/\/$/, '') } },
  test: {
    environment: 'node',
    include: ['{app,components,db,server,scripts,messages,samples}/**/*.test.{ts,tsx}'],
    exclude: ['**/node_modules/**', 'e2e/**', 'dist/**', '.next/**'],
    globalSetup: ['db/testing/start-postgres.ts'],
    pool: 'forks',
    // Limits against hanging, not measurements: the machine may be busy with something else.
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
