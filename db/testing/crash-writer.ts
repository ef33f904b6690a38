/**
 * A studio for crash tests: opens the folder it is given, appends events of many sessions without end, and writes a line
 * for each one that was acknowledged. A test kills it. `hold` only opens and says so.
 */
import { writeSync } from 'node:fs';
import { silentLogger } from '../../server/observability/logger';
import { openDatabase } from '../open';
import { EventWriter } from '../queries/event-writer';

const [, , dataDir = '', mode = 'write'] = process.argv;
/** Synchronous: a line that was not written yet when the kill comes would not count as acknowledged. */
const say = (line: string) => writeSync(1, `${line}\n`);

async function main(): Promise<void> {
  const database = await openDatabase({ dataDir, logger: silentLogger });
  say('open');
  if (mode === 'hold') return;
  const writer = new EventWriter(database);
  await Promise.all(
    Array.from({ length: 16 }, async (_, s) => {
      for (let seq = 0; ; seq++) {
        const data = { changes: { text: 'z'.repeat(2000) } };
        await writer.append(`s${s}`, null, [{ seq, atMs: seq, type: 'state.changed', data }]);
        say(`s${s} ${seq}`);
      }
    }),
  );
}

main().catch((error: unknown) => {
  say(`failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
