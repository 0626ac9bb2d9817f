import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Change } from '../../src/store/engine/index.ts';
import { createGrant, revokeGrant } from '../../src/store/organizations/grants.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { alpha, becomes, eventually, physics } from '../support/app.ts';
import { everyKind } from '../support/store.ts';
import { type ConsoleApp, type CookieBrowser, signIn, startConsoleApp } from './harness.ts';

const adaKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPVEkn9qO9WSmvcQd3hzQWbrKvbrJKJsUs6QD9K/sGqh ada@laptop';

/** The events of a stream so far, and whether it is over. */
async function openStream(browser: CookieBrowser) {
  const stopping = new AbortController();
  const response = await browser.call('/events', { signal: stopping.signal });
  assert.equal(response.status, 200);
  const stream = { text: '', isOver: false, stop: () => stopping.abort() };
  void (async () => {
    for await (const part of response.body ?? []) stream.text += Buffer.from(part).toString();
  })()
    .catch(() => {})
    .finally(() => {
      stream.isOver = true;
    });
  return stream;
}

const has = (text: string) => (stream: { text: string }) => stream.text.includes(text);

test('a stream says what changed, to those who may know, and ends with the sign-in', async () => {
  await using app: ConsoleApp = await startConsoleApp();
  const ada = await signIn(app, 'ada');
  const eve = await signIn(app, 'eve');
  const root = await signIn(app, 'root');
  const orgId = (await ada.ask('business/me')).default_org_id;
  const streams = {
    ada: await openStream(ada),
    eve: await openStream(eve),
    root: await openStream(root),
  };
  for (const stream of Object.values(streams)) await eventually(async () => stream, has('event: open'));

  // Reports of clusters come by themselves. Eve may neither see nor use them; root sees everything.
  await eventually(async () => streams.ada, has(`event: reported\ndata: ["${alpha}"`));
  await eventually(async () => streams.root, has('event: reported'));
  assert.doesNotMatch(streams.eve.text, /reported/);

  // A key changes what clusters are to have.
  await ada.ask('business/me/ssh-keys', { body: { public_key: adaKey } });
  await eventually(async () => streams.ada, has('"me"'));
  await eventually(async () => streams.ada, has(`"cluster/${alpha}"`));
  await eventually(async () => streams.root, has('"installation"'));
  assert.doesNotMatch(streams.eve.text, /cluster\/|installation|"me"/);
  assert.doesNotMatch(streams.ada.text, /installation/);

  // Somebody joins.
  const body = { email: 'dan@physics.example', role: 'member' };
  await ada.ask(`business/organizations/${orgId}/members`, { body });
  await eventually(async () => streams.eve, has(`"members/${orgId}"`));
  assert.doesNotMatch(streams.root.text, /members\//);
  // What a stream says are topics: no name, no address.
  assert.doesNotMatch(
    Object.values(streams)
      .map(({ text }) => text)
      .join(),
    /dan@|physics/,
  );

  // Eve is deactivated: her stream says so and ends.
  const { user } = await eve.ask('business/me');
  await root.ask(`business/operator/people/${user.id}/deactivate`, { body: {} });
  await becomes(() => streams.eve.isOver, true);
  assert.match(streams.eve.text, /event: signed-out/);
  assert.equal((await eve.call('/events')).status, 401);
  assert.equal(streams.ada.isOver, false);

  // One person holds twelve; the oldest goes.
  const more = [];
  for (let count = 0; count < 12; count += 1) more.push(await openStream(ada));
  await becomes(() => streams.ada.isOver, true);
  assert.equal(more.filter(({ isOver }) => isOver).length, 0);
  for (const stream of [...more, streams.root]) stream.stop();
});

test('a stream names a cluster until the grant is revoked or over, and of sign-ins their person only', async () => {
  await using app: ConsoleApp = await startConsoleApp();
  const { store } = app.test.app;
  const eve = await signIn(app, 'eve');
  const ada = await signIn(app, 'ada');
  const streams = { eve: await openStream(eve), ada: await openStream(ada) };
  for (const stream of Object.values(streams)) await eventually(async () => stream, has('event: open'));
  const person = await findPersonByEmail(store.read, 'eve@physics.example');
  const userId = person?.id ?? '';
  const terms = { clusterId: alpha, userId, scope: null, roleId: null, grantedBy: userId };
  const grantUntil = (expiresAt: string | null) =>
    store.write((tx) => createGrant(tx, { ...terms, relation: 'kubernetes.viewer', expiresAt }));
  /** Whether Eve is told of a change of the cluster, for Ada is. */
  const isTold = async () => {
    for (const stream of Object.values(streams)) stream.text = '';
    await store.write(async (tx) => tx.changed({ kind: 'cluster', clusterId: alpha }));
    await eventually(async () => streams.ada, has(`"cluster/${alpha}"`));
    await store.write(async (tx) => tx.changed({ kind: 'person', userId }));
    await eventually(async () => streams.eve, has('"me"'));
    await new Promise((done) => setTimeout(done, 1_500));
    return streams.eve.text.includes(alpha);
  };
  assert.equal(await isTold(), false);
  const grantId = await grantUntil(null);
  assert.equal(await isTold(), true);
  // What was under way when the grant ended may still arrive once.
  await store.write((tx) => revokeGrant(tx, grantId));
  await eventually(isTold, (told) => !told);
  await grantUntil(new Date(Date.now() + 60_000).toISOString());
  assert.equal(await isTold(), true);
  app.test.advance(60_000);
  await eventually(isTold, (told) => !told);

  // A sign-in, and ending no other.
  for (const stream of Object.values(streams)) stream.text = '';
  const changes: Change[] = [];
  const stop = store.onChange(everyKind, (some) => changes.push(...some));
  const second = await signIn(app, 'eve');
  await eventually(async () => streams.eve, has('["sign-ins"]'));
  await second.call('/sessions/end-others', { method: 'POST' });
  await becomes(() => streams.eve.isOver, true);
  await second.call('/sessions/end-others', { method: 'POST' });
  stop();
  const browsers = changes.filter((change) => change.kind === 'browsers');
  assert.deepEqual(browsers, [
    { kind: 'browsers', userId },
    { kind: 'browsers', userId },
  ]);
  assert.deepEqual(
    changes.filter((change) => change.kind === 'person'),
    [],
  );
  assert.doesNotMatch(streams.ada.text, /members\/|sign-ins/);
  streams.ada.stop();
});

test('a person who manages members and sees no cluster receives the clusters in service of the organization, and of no others', async () => {
  const [alphaCluster, betaCluster] = physics.clusters ?? [];
  if (!alphaCluster || !betaCluster) throw new Error('unreachable');
  const other = {
    ...betaCluster,
    name: 'gamma',
    id: '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50',
    organization: 'chemistry',
  };
  const clusters = [alphaCluster, betaCluster, other];
  await using app: ConsoleApp = await startConsoleApp({ lab: { ...physics, clusters } });
  const ada = await signIn(app, 'ada');
  const eve = await signIn(app, 'eve');
  const orgId = (await ada.ask('business/me')).default_org_id;
  const person = await findPersonByEmail(app.test.app.store.read, 'eve@physics.example');
  const stream = await openStream(eve);
  await eventually(async () => stream, has('event: open'));
  const body = { permissions: ['members.manage'] };
  await ada.ask(`business/organizations/${orgId}/members/${person?.id}/permissions`, { method: 'PUT', body });
  await eventually(async () => stream, has(`"${alpha}"`));
  await eventually(async () => stream, has(`"${betaCluster.id}"`));
  const list = await eve.call(`/api/platform/clusters?businessOrgId=${orgId}`);
  assert.equal(list.status, 403);
  assert.ok(!stream.text.includes(other.id));
  stream.stop();
});
