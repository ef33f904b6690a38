/**
 * Holds the walls of the house: which folder may import from which. Reads the import lines of every source file and
 * prints each one that goes the wrong way. Types may cross from server/ to the pages; code may not.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Folder → folders its code may import. The longest matching folder counts; a folder may always import itself. */
const ENGINE = [
  'server/rollout',
  'server/harness',
  'server/inference',
  'server/tools',
  'server/sandbox',
  'server/observability',
];
const ALLOWED = {
  app: ['components', 'server/core', 'messages'],
  components: ['server/core', 'messages'],
  'server/core': [],
  'server/inference': ['server/core', 'server/observability', 'server/child-entry'],
  'server/tools': ['server/core', 'server/sandbox', 'server/observability'],
  'server/sandbox': ['server/core', 'server/observability', 'server/child-entry'],
  'server/observability': ['server/core', 'db'],
  'server/harness': ['server/core', ...ENGINE],
  'server/rollout': ['server/core', ...ENGINE, 'db'],
  'server/services': ['server/core', ...ENGINE, 'db'],
  'server/commands': ['server/core'],
  'server/routers': ['server/core', 'server/services', 'server/realtime', 'server/observability'],
  'server/realtime': ['server/core', 'server/services', 'server/observability', 'db'],
  'server/http': ['server/core', 'server/services', 'server/routers', 'server/realtime', 'server/observability', 'db'],
  db: ['server/core', 'server/child-entry', 'server/observability'],
};
/** Where only types are wanted: the pages know the router's shape, everyone may name a shape next door. */
const TYPES_ALSO = {
  app: ['server'],
  components: ['server'],
  'server/core': ['server/core'],
  'server/tools': ['server/harness'],
  'server/routers': ['db'],
  db: ['server'],
  'server/commands': ['server/routers'],
};
/** Packages that only one folder may speak to. */
const PACKAGES = {
  'drizzle-orm': ['db'],
  postgres: ['db'],
  '@electric-sql/pglite': ['db'],
  'node-llama-cpp': ['server/inference', 'scripts'],
  'quickjs-emscripten': ['server/sandbox'],
  next: ['app', 'components', 'server/http', 'server/main'],
};

/** Where a process starts and may look at its environment. */
const EDGES = [
  'server/env.ts',
  'server/main.ts',
  'server/cli.ts',
  'scripts/',
  'e2e/',
  'next.config.ts',
  'vitest.config.ts',
  'playwright.config.ts',
  'drizzle.config.ts',
  'db/testing/',
];

const problems = [];
for (const file of sources(root)) {
  const path = relative(root, file).split(sep).join('/');
  const home = folderOf(path, Object.keys(ALLOWED));
  const text = readFileSync(file, 'utf8');
  for (const [, typeOnly, target] of text.matchAll(
    /^\s*(?:import|export)\s+(type\s+)?(?:[\w*{}\s,$]+\s+from\s+)?['"]([^'"]+)['"]/gm,
  )) {
    check(path, home, target, Boolean(typeOnly));
  }
  for (const [, target] of text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]\s*\)/g)) check(path, home, target, false);
  if (home === 'server/core' && /from 'node:|\bBuffer\b/.test(text) && !isTest(path))
    problems.push(`${path}: server/core runs in the browser too: no node modules, no Buffer.`);
  if (/\bprocess\.env\b/.test(text) && !isTest(path) && !EDGES.some((edge) => path.startsWith(edge)))
    problems.push(`${path}: process.env is read at the edge only (server/env.ts).`);
  if (/dangerouslySetInnerHTML/.test(text))
    problems.push(`${path}: text from models and tools is rendered as text, never as HTML.`);
}
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}

function check(path, home, target, typeOnly) {
  if (isTest(path)) return;
  if (!target.startsWith('.') && !target.startsWith('@/')) {
    const name = target.startsWith('@') ? target.split('/').slice(0, 2).join('/') : target.split('/')[0];
    const homes = PACKAGES[name];
    if (homes && !typeOnly && !homes.some((h) => path === `${h}.ts` || path.startsWith(`${h}/`)))
      problems.push(`${path}: only ${homes.join(', ')} may use ${name}.`);
    return;
  }
  if (!home) return;
  const to = target.startsWith('@/') ? target.slice(2) : posix.join(posix.dirname(path), target);
  const allowed = [home, ...ALLOWED[home], ...(typeOnly ? (TYPES_ALSO[home] ?? []) : [])];
  const inside = /^(app|components|server|db|messages)\b/.test(to);
  if (inside && !allowed.some((a) => to === a || to.startsWith(`${a}/`)))
    problems.push(`${path}: ${home} may not import ${to}${typeOnly ? ' (not even its types)' : ''}.`);
}

function folderOf(path, folders) {
  return folders.filter((f) => path.startsWith(`${f}/`)).sort((a, b) => b.length - a.length)[0] ?? null;
}

function isTest(path) {
  return (
    /\.(test|bench)\.tsx?$/.test(path) ||
    path.includes('/testing/') ||
    path.startsWith('e2e/') ||
    path.startsWith('scripts/')
  );
}

function* sources(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (['node_modules', '.next', 'dist', '.git', '.data', '.cache'].includes(entry.name)) continue;
    const full = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(full);
    else if (/\.(ts|tsx|mts)$/.test(entry.name)) yield full;
  }
}
