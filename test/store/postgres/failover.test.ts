/** The smoke test of failover: which of several hosts is taken, before a standby takes over and behind that. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import { viewPostgres } from '../../../src/store/engine/engine.ts';
import { becomes } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { open } from './counting.ts';
import { createPair, portOf, socketOf, urlOf } from './pair.ts';
import { test } from './server.ts';

test('a server that knows of no failover leaves the former primary for the one that took over', async (t) => {
  await using pair = await createPair();
  const { primary, standby, url, failOver, startFormer } = pair;
  // One that is down and one in recovery are left.
  const down = join(primary.directory, 'nobody');
  const first = await open(t, urlOf(down, socketOf(standby), socketOf(primary)));
  assert.equal(await portOf(first), primary.port);
  using early = temporaryDirectory();
  await assert.rejects(openStore(early.path, { database: urlOf(down, socketOf(standby)) }), {
    code: 'service_unavailable',
    message: /nobody: .*ENOENT.*; .*: it is a standby\.$/,
  });
  await (await openStore(early.path, { database: url })).close();
  await failOver();
  await startFormer();
  await standby.stop('SIGQUIT');
  // It has seen no other timeline.
  const store = await openStore(early.path, { database: url });
  t.after(() => store.close());
  assert.equal(await portOf(store), primary.port);
  await standby.start();
  await becomes(() => portOf(store).catch(() => 0), standby.port);
  assert.equal(store.formerPrimaries().length, 1);
  const other = await open(t, url);
  // Both take writes when it starts, and when `check` looks.
  assert.equal(await portOf(other), standby.port);
  const view = await viewPostgres(url);
  assert.equal(await portOf({ read: view.reader }), standby.port);
  await view.close();
});
