/**
 * `npm run test:servers [vllm|llama-server …]`: brings real inference servers into .cache/servers (without a name: all),
 * and tests the studio against each: the conformance suite, weight updates, the main job. The tests start the servers
 * themselves, one at a time. Ends with one line, `N passed, N failed, N skipped`.
 *
 * A program that is there already may be named in the environment instead: STUDIO_TEST_VLLM, STUDIO_TEST_LLAMA_SERVER.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { mustHaveAll, providePostgres } from './provision.mjs';
import { provideLlamaServer } from './servers/llama-server.mjs';
import { provideVllm } from './servers/vllm.mjs';
import { checkNode, ensureInstalled, root, runProgram, stop } from './setup.mjs';

const SERVERS = {
  'llama-server': {
    variable: 'STUDIO_TEST_LLAMA_SERVER',
    provide: provideLlamaServer,
    tests: ['server/inference/remote/real-llama-server.test.ts', 'server/inference/remote/llama-server-job.test.ts'],
  },
  vllm: {
    variable: 'STUDIO_TEST_VLLM',
    provide: provideVllm,
    tests: ['server/inference/remote/real-vllm.test.ts', 'server/inference/remote/vllm-job.test.ts'],
  },
};

checkNode();
const names = process.argv.slice(2);
const unknown = names.find((name) => !Object.hasOwn(SERVERS, name));
if (unknown !== undefined)
  stop(`There is no server ${JSON.stringify(unknown)} to test; there are ${Object.keys(SERVERS).join(', ')}.`, 2);
await ensureInstalled();
const totals = { passed: 0, failed: 0, skipped: 0 };
const say = (line) => process.stdout.write(`${line}\n`);
const results = join(root, '.cache', 'test-results');
mkdirSync(results, { recursive: true });
const database = providePostgres();
if (!database.found) say(`No PostgreSQL is here; the embedded database serves. To bring ${database.missing}`);

for (const [name, { variable, provide, tests }] of Object.entries(SERVERS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  say(`— ${name}`);
  const given = process.env[variable];
  const { found, missing } = given ? { found: given, missing: null } : await provide();
  if (!found) {
    say(`  not here; its tests are skipped. To bring ${missing}`);
    if (mustHaveAll) totals.failed++;
    else totals.skipped += tests.length;
    continue;
  }
  say(`  ${found}`);
  const report = join(results, `servers-${name}.json`);
  rmSync(report, { force: true });
  const reporters = ['--reporter=verbose', '--reporter=json', `--outputFile.json=${report}`];
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  // One file after the other: two servers would take each other's processor and memory.
  const args = [vitest, 'run', '--no-file-parallelism', ...reporters, ...tests];
  const environment = { ...process.env, [variable]: found, STUDIO_TEST_POSTGRES_BIN: database.found ?? '' };
  addReport(name, await runProgram(process.execPath, args, { env: environment }), report);
}

say('');
say(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exit(totals.failed > 0 ? 1 : 0);

/** A runner that died without a report has failed, whatever it had counted. */
function addReport(name, code, file) {
  let counted = { passed: 0, failed: 0, skipped: 0 };
  if (existsSync(file)) {
    const report = JSON.parse(readFileSync(file, 'utf8'));
    const suites = report.numFailedTestSuites > 0 && report.numFailedTests === 0 ? 1 : 0;
    counted = {
      passed: report.numPassedTests,
      failed: report.numFailedTests + suites,
      skipped: report.numPendingTests + report.numTodoTests,
    };
  }
  if (code !== 0 && counted.failed === 0) {
    say(`  ${name} ended with ${code} without naming a failed test.`);
    counted.failed = 1;
  }
  for (const key of Object.keys(totals)) totals[key] += counted[key];
}
