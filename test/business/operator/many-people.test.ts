/** A lab file with many people, and everybody else meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../../src/domain/clusters/lab.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { becomes, physics, startTestApp } from '../../support/app.ts';

const people = 1_000;
const lab: Lab = {
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: Array.from({ length: people }, (_, i) => ({
        email: `p${i}@physics.example`,
        role: 'member' as const,
        username: `p${i}`,
        permissions: ['clusters.read', 'clusters.ssh'],
      })),
    },
  ],
};

test('others get their turn while a lab of many people is applied, see all of it or nothing, and their writes do not queue behind one for each person', async () => {
  let writes = 0;
  const log = createLogger('debug', (line) => {
    if (line.includes('"store.written"')) writes++;
  });
  await using service = await startTestApp({
    log,
    lab: { ...physics, clusters: physics.clusters?.slice(0, 1) ?? [] },
  });
  const { read } = service.app.store;
  const count = async (table: 'memberships' | 'access_list_users') =>
    (await read.selectFrom(table).select('user_id').execute()).length;
  const before = await count('memberships');
  const seen = new Set<number>();
  let turns = 0;
  let applying = true;
  const others = (async () => {
    while (applying) {
      seen.add(await count('memberships'));
      turns++;
      await new Promise((done) => setImmediate(done));
    }
  })();
  const { status, body } = await service.write('/operator/lab', { as: 'root', body: { lab } });
  applying = false;
  await others;
  assert.equal(status, 200, JSON.stringify(body));
  seen.add(await count('memberships'));
  assert.deepEqual([...seen], [before, before + people]);
  assert.ok(turns > 20, `${turns} turns`);
  writes = 0;
  await becomes(async () => (await count('access_list_users')) >= people, true);
  assert.ok(writes < people / 4, `${writes} writes until everybody is listed`);
});
