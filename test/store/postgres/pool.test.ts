/** The pool of connections to read by, where connecting does not end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as settle } from 'node:timers/promises';
import { parsePostgresUrl } from '../../../src/lib/postgres-url.ts';
import type { Session } from '../../../src/store/engine/postgres/connect.ts';
import { Primary } from '../../../src/store/engine/postgres/primary.ts';
import { createPool } from '../../../src/store/engine/postgres/reads.ts';

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
