import { expect, it } from 'vitest';
import { openDatabase } from '../../db/open';
import { describeOnBothDatabases } from '../../db/testing/database';
import { silentLogger } from '../observability/logger';
import { createSharedRunLogBus } from './database-wake-ups';

describeOnBothDatabases('wake-ups of a run log', (open) => {
  it('reach followers in this process, and no one who follows another run', async () => {
    const database = await open();
    const bus = await createSharedRunLogBus(database, silentLogger);
    const woken: string[] = [];
    bus.subscribe('run_a', () => void woken.push('a'));
    const leave = bus.subscribe('run_b', () => void woken.push('b'));
    bus.grew('run_a');
    expect(woken).toEqual(['a']);
    leave();
    expect(bus.followers()).toBe(1);
    await bus.close();
  });

  it('reach followers in another process on a server', async (context) => {
    const database = await open();
    if (!('databaseUrl' in database.address)) return context.skip();
    const other = await openDatabase({ databaseUrl: database.address.databaseUrl, logger: silentLogger });
    const [here, there] = await Promise.all([
      createSharedRunLogBus(database, silentLogger),
      createSharedRunLogBus(other, silentLogger),
    ]);
    const heard = new Promise<void>((resolve) => {
      there.subscribe('run_a', resolve);
    });
    here.grew('run_a');
    here.grew('run_a');
    await heard;
    await Promise.all([here.close(), there.close()]);
    await other.close();
  });
});
