/** Connecting, where no PostgreSQL answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as settle } from 'node:timers/promises';
import { createLogger } from '../../../src/lib/log.ts';
import { parsePostgresUrl } from '../../../src/lib/postgres-url.ts';
import type { Session } from '../../../src/store/engine/postgres/connect.ts';
import { Primary } from '../../../src/store/engine/postgres/primary.ts';
import { createPool } from '../../../src/store/engine/postgres/reads.ts';
import { createAwayLog } from '../../../src/store/engine/postgres/start.ts';

test('a connection that no host answers is given up after 10 s, and closed where it comes all the same', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const late = Promise.withResolvers<Session>();
  let closed = 0;
  class Silent extends Primary {
    override connect = () => late.promise;
  }
  const pool = createPool(new Silent(parsePostgresUrl('postgres://a,b,c,d/x')), 'requests', 1);
  const first = pool.connect();
  const refused = assert.rejects(first, /connection timeout/);
  t.mock.timers.tick(10_000);
  await refused;
  const close = async () => {
    closed += 1;
  };
  late.resolve({ close } as unknown as Session);
  await settle();
  assert.equal(closed, 1);
  await pool.end();
});

test('what is waited for is said at once, and again at growing intervals', () => {
  let now = 0;
  const said: string[] = [];
  const away = createAwayLog(
    createLogger('info', (line) => {
      const { event, message, waitedMs } = JSON.parse(line);
      assert.equal(event, 'database.away');
      said.push(`${Math.round(waitedMs / 1000)} ${message}`);
    }),
    () => now,
  );
  for (; now < 3_600_000; now += 1_000) away.say(now === 5_000 ? 'b' : 'a');
  const seconds = said.map((line) => Number(line.split(' ')[0]));
  assert.deepEqual(said.slice(0, 4), ['0 a', '5 b', '15 a', '35 a']);
  const pauses = seconds.slice(1).map((at, index) => at - (seconds[index] ?? 0));
  assert.equal(Math.max(...pauses), 600);
  assert.ok(said.length < 16);
});
