/**
 * `npm test`: sets up what the tests need and runs them all: lint, types, unit and integration (vitest), the pages in a
 * real browser (Playwright). Ends with one line, `N passed, N failed, N skipped`.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { mustHaveAll, provideBubblewrap, provideChromium, provideModel, providePostgres } from './provision.mjs';
import { checkNode, ensureBuilt, ensureInstalled, root, runProgram } from './setup.mjs';

checkNode();
await ensureInstalled();
const totals = { passed: 0, failed: 0, skipped: 0 };
const say = (line) => process.stdout.write(`${line}\n`);
const bin = (name, ...rest) => [process.execPath, [join(root, 'node_modules', ...name.split('/')), ...rest]];
const results = join(root, '.cache', 'test-results');
rmSync(results, { recursive: true, force: true });
mkdirSync(results, { recursive: true });

say('— What the tests need');
const needs = {
  postgres: providePostgres(),
  chromium: provideChromium(),
  bubblewrap: provideBubblewrap(),
  model: provideModel(),
};
for (const [name, { found, missing }] of Object.entries(needs)) {
  say(found ? `  ${name}: ${found}` : `  ${name}: not here; what needs it is skipped. To bring ${missing}`);
  if (!found && mustHaveAll) {
    say(`  On this machine ${name} must be there.`);
    totals.failed++;
  }
}
const environment = {
  ...process.env,
  STUDIO_TEST_POSTGRES_BIN: needs.postgres.found ?? '',
  STUDIO_TEST_CHROMIUM: needs.chromium.found ?? '',
  STUDIO_TEST_MODEL: needs.model.found ?? '',
};

await check('lint', ...bin('@biomejs/biome/bin/biome', 'check', '.'));
await check('walls', process.execPath, [join(root, 'scripts', 'lint-walls.mjs')]);
await check('types', ...bin('typescript/bin/tsc', '--noEmit'));

say('— Unit and integration tests');
const vitestReport = join(results, 'vitest.json');
const vitestCode = await runProgram(
  ...bin('vitest/vitest.mjs', 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${vitestReport}`),
  { env: environment },
);
addReport('vitest', vitestCode, vitestReport, (r) => ({
  passed: r.numPassedTests,
  failed: r.numFailedTests + (r.numFailedTestSuites > 0 && r.numFailedTests === 0 ? 1 : 0),
  skipped: r.numPendingTests + r.numTodoTests,
}));

say('— The pages, in a real browser');
if (needs.chromium.found) {
  await ensureBuilt();
  const browserReport = join(results, 'playwright.json');
  const code = await runProgram(...bin('@playwright/test/cli.js', 'test'), {
    env: { ...environment, PLAYWRIGHT_JSON_OUTPUT_NAME: browserReport },
  });
  addReport('browser', code, browserReport, ({ stats }) => ({
    passed: stats.expected + stats.flaky,
    failed: stats.unexpected,
    skipped: stats.skipped,
  }));
} else {
  totals.skipped++;
}

say('');
say(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exit(totals.failed > 0 ? 1 : 0);

async function check(name, file, args) {
  say(`— ${name}`);
  const code = await runProgram(file, args);
  if (code === 0) totals.passed++;
  else totals.failed++;
}

/** A runner that died without a report has failed, whatever it had counted. */
function addReport(name, code, file, read) {
  let counted = { passed: 0, failed: 0, skipped: 0 };
  if (existsSync(file)) counted = read(JSON.parse(readFileSync(file, 'utf8')));
  if (code !== 0 && counted.failed === 0) {
    say(`  ${name} ended with ${code} without naming a failed test.`);
    counted.failed = 1;
  }
  for (const key of Object.keys(totals)) totals[key] += counted[key];
}
