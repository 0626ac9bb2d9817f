/** A standby that took over, and the primary of before, which is started again: it takes writes, and is not served from. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger } from '../../../src/lib/log.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import { openPostgres } from '../../../src/store/engine/engine.ts';
import { becomes, eventually, startTestApp } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { freePorts } from '../../support/ports.ts';
import { createPostgres } from '../../support/postgres-server.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';
import { createPair, portOf } from './pair.ts';
import { test } from './server.ts';

test('a former primary is refused while the one that took over is away, also after a restart', async (t) => {
  await using pair = await createPair();
  const { primary, standby, url, failOver, startFormer } = pair;
  const [metrics = 0] = await freePorts(1);
  const config = {
    ...{ database: url, secretsKeyFile: './secrets.key' },
    metrics: { listen: `127.0.0.1:${metrics}` },
  };
  await using service = await startTestApp({ config });
  const ready = async () => (await service.business('/readyz')).status;
  const addKey = () => service.write('/me/ssh-keys', { as: 'ada', body: { public_key: newPublicKey() } });
  const problems = async () => {
    const { body } = await service.business('/operator/problems', { as: 'root' });
    return (body.problems as { about: string; message: string }[]).filter(
      ({ about }) => about === 'PostgreSQL',
    );
  };
  const gauge = async () =>
    /^andromeda_database_former_primaries (\d+)$/m.exec(
      await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text(),
    )?.[1];
  const added = await addKey();
  assert.equal(added.status, 201);
  await failOver();
  await eventually(addKey, ({ status }) => status === 201);
  assert.equal(await gauge(), '0');
  const { status } = await service.write(`/me/ssh-keys/${added.body.ssh_key.id}/revoke`, { as: 'ada' });
  assert.equal(status, 200);

  // It is a problem as soon as it is there, and nothing is asked of it.
  await startFormer();
  const [problem] = await eventually(problems, (all) => all.length > 0);
  assert.match(
    problem?.message ?? '',
    /it is a former primary, on timeline 1, and timeline 2 has begun on another host\. To serve from it on purpose, stop all servers and move .*postgres-timeline away on each\.$/,
  );
  assert.equal(await gauge(), '1');
  assert.equal(await ready(), 200);
  assert.equal(await portOf(service.app.store), standby.port);

  const keysOfFormer = () => primary.query('select id from ssh_keys order by id');
  const former = await keysOfFormer();
  const dataDir = join(service.dataDir, 'data');
  const [, timeline] = readFileSync(join(dataDir, 'postgres-timeline'), 'utf8').trim().split(' ');
  assert.equal(timeline, '2');

  // Every answer says so, and the server is not ready at once.
  await standby.stop('SIGQUIT');
  const began = performance.now();
  await eventually(ready, (code) => code === 503);
  t.diagnostic(`not ready after ${Math.round(performance.now() - began)} ms`);
  for (const reply of [
    await service.business('/readyz'),
    await service.business('/me', { as: 'ada' }),
    await addKey(),
  ]) {
    assert.equal(reply.status, 503);
    assert.match(reply.body.message, /former primary/);
  }
  assert.deepEqual(await keysOfFormer(), former);

  // So is a server that starts, and it waits for the one that took over.
  await service.app[Symbol.asyncDispose]();
  await assert.rejects(openStore(dataDir, { database: url }), {
    code: 'service_unavailable',
    message: /it is a former primary, on timeline 1/,
  });
  const lines: string[] = [];
  const log = createLogger('info', (line) => void lines.push(line));
  const opening = openStore(dataDir, { database: url, log });
  await becomes(() => lines.join('').includes('"database.away"'), true);
  await standby.start();
  const store = await opening;
  t.after(() => store.close());
  assert.equal(await portOf(store), standby.port);
  const keys = await store.read.selectFrom('ssh_keys').select('lifecycle_state').execute();
  assert.deepEqual(keys.map((key) => key.lifecycle_state).sort(), ['active', 'revoked']);
});

test('another PostgreSQL in its place is refused, and the file that says so is named', async () => {
  await using a = await createPostgres();
  await using b = await createPostgres(undefined, { isAnother: true });
  using directory = temporaryDirectory();
  await (await openStore(directory.path, { database: a.url() })).close();
  await assert.rejects(openStore(directory.path, { database: b.url() }), {
    code: 'service_unavailable',
    message: /another PostgreSQL than the one that was served from.*move .*postgres-timeline away/,
  });
  for (const text of ['', 'damaged']) {
    writeFileSync(join(directory.path, 'postgres-timeline'), text);
    await assert.rejects(openStore(directory.path, { database: a.url() }), {
      code: 'invalid_state',
      message: /postgres-timeline does not have the timeline of PostgreSQL/,
    });
  }
});

test('a newest timeline that cannot be noted is in the log, and the database is served from', async () => {
  await using postgres = await createPostgres();
  const events: string[] = [];
  const log = createLogger('error', (line) => void events.push(JSON.parse(line).event));
  const note = () => {
    throw new Error('no space left');
  };
  const timeline = { file: 'postgres-timeline', noted: undefined, note };
  const connections = await openPostgres(postgres.url(), { serverId: 'one', timeline, log });
  await connections[Symbol.asyncDispose]();
  assert.deepEqual(events, ['database.timeline.failed']);
});
