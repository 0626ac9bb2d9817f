/** Login nodes that do not take the gateway's next key are problems for operators while both keys hold. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { keysAt, withNext } from '../../src/domain/key-rotation.ts';
import { createLogger } from '../../src/lib/log.ts';
import { generateSshKey, parseSshKey, type SshKeyFile } from '../../src/lib/ssh/public-key.ts';
import { watchLoginNodes } from '../../src/service/compose/login-node-keys.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import { openLab, test } from '../gateway/lab.ts';
import { alpha, eventually, physics } from '../support/app.ts';
import { openTestStore } from '../support/store.ts';

const day = 86_400_000;
const parsed = (text: string): SshKeyFile => {
  const key = parseSshKey(text);
  assert.ok(key);
  return key;
};

test('login nodes are asked about the next key, with the time from when on they would refuse the gateway', async (t) => {
  const lab = await openLab();
  t.after(() => lab.close());
  await using store = await openTestStore(physics);
  const node = { ...lab.route.loginNode, name: 'login-1', up: true, username: lab.route.username };
  await recordSlurmReport(store, alpha, {
    ...{ manifestGeneration: 1, desiredGeneration: 1, listVersion: 1, loginNodes: [node], accounts: [] },
    ...{ runningJobs: [], machines: [], failure: null },
  } as unknown as Parameters<typeof recordSlurmReport>[2]);
  const known = parsed(readFileSync(join(lab.dir, 'client'), 'utf8'));
  const start = Date.now();
  const clock = { now: start };
  let set = withNext({ key: known }, parsed(generateSshKey().privateKey), 30, start);
  const keys = { of: () => keysAt(set, clock.now) } as unknown as Parameters<
    typeof watchLoginNodes
  >[0]['keys'];
  const watch = watchLoginNodes(
    { store, keys, log: createLogger('silent') },
    { firstMs: 1, everyMs: 20, againMs: 1 },
  );
  t.after(() => watch.stop());
  const problems = (wanted: number) =>
    eventually(
      async () => watch.problems(),
      (found) => found.length === wanted,
    );

  const [soon] = await problems(1);
  assert.equal(soon?.urgency, 'soon');
  assert.equal(
    soon?.message,
    `Login nodes do not take the next key, and let nobody in from ${new Date(start + 30 * day).toISOString()} on: alpha, login-1 (127.0.0.1:${node.port}): it does not take the key.`,
  );
  clock.now += 16 * day;
  assert.equal((await problems(1))[0]?.urgency, 'now');
  clock.now += 16 * day;
  assert.match(
    (await problems(1))[0]?.message ?? '',
    /^Login nodes do not take the present key, and let nobody in: alpha, login-1 /,
    'and it does not go with the former key',
  );
  // It takes the next one, and no other.
  set = withNext({ key: parsed(generateSshKey().privateKey) }, known, 30, clock.now);
  await problems(0);
  // One in the place of a stolen one, which holds alone at once.
  set = withNext({ key: known }, parsed(generateSshKey().privateKey), 0, clock.now);
  assert.match((await problems(1))[0]?.message ?? '', /^Login nodes do not take the present key/);
  set = { key: known };
  await problems(0);
});
