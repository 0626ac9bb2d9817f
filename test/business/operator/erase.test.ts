/** Erasing a person, changing an address, and taking an identity away. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { auditOperations } from '../../../src/domain/audit/sentence.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { startErasures } from '../../../src/service/audit/erasure.ts';
import { appendAuditEntry } from '../../../src/store/audit/audit.ts';
import { erasePerson, findErasure } from '../../../src/store/audit/erasure.ts';
import { writeBackup } from '../../../src/store/data-dir/backup.ts';
import { inspectDatabase } from '../../../src/store/data-dir/inspect.ts';
import { listRows } from '../../../src/store/engine/rows.ts';
import { removeMembership, updateUsername } from '../../../src/store/organizations/membership-changes.ts';
import { findOrganizationBySlug } from '../../../src/store/organizations/organizations.ts';
import { createIdentity, unbindIdentity, updateIdentityAt } from '../../../src/store/people/identities.ts';
import {
  createPerson,
  systemUserId,
  updateDisplayName,
  updateEmail,
  updateLifecycle,
} from '../../../src/store/people/people.ts';
import { createMachine, sessionAt } from '../../cli/harness.ts';
import { alpha, becomes, eventually, physics, startTestApp, type TestApp } from '../../support/app.ts';
import { fieldsOf } from '../../support/fields.ts';
import { refused } from '../../support/refused.ts';
import { auditKeys } from '../../support/service-keys.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';
import { isOnFile, openTestStore, requireRow, testEntry, testOnFile, userId } from '../../support/store.ts';

const bob = 'bob@physics.example';

const find = async (service: TestApp, email: string) =>
  (await service.business(`/operator/people?email=${email}`, { as: 'root' })).body.people[0];

/** Whatever of the database has a text in it, by table. */
function searchDatabase(service: TestApp, text: string): string[] {
  using closing = new DisposableStack();
  const database = new Database(join(service.dataDir, 'data/andromeda.db'), { readonly: true });
  closing.defer(() => database.close());
  const tables = database.prepare("select name from sqlite_master where type = 'table'").all() as {
    name: string;
  }[];
  return tables
    .filter(({ name }) =>
      database
        .prepare(`select * from "${name}"`)
        .all()
        .some((row) => JSON.stringify(row).toLowerCase().includes(text)),
    )
    .map(({ name }) => name);
}

// Which is shown by what the file and a backup of it have.
testOnFile(
  'of an erased person a pseudonym stays, and the audit trail can be checked as before',
  async (t) => {
    await using service = await startTestApp();
    const me = await service.business('/me', { as: 'bob' });
    const { id, display_name: name } = me.body.user;
    const publicKey = newPublicKey();
    const labelled = { public_key: `${publicKey} laptop-of-robert` };
    await service.write('/me/ssh-keys', { as: 'bob', body: labelled, reason: 'the laptop of Bob' });
    // Named by somebody else, and in somebody else's entries.
    const asked = { body: { email: 'x@physics.example' }, reason: `asked by ${bob}` };
    await service.write('/operator/people', { as: 'root', ...asked });
    const ada = (await service.business('/me', { as: 'ada' })).body.user.id;
    const session = {
      ...{ seq: 1, id: 'session_1', cluster_id: alpha, organization_id: null, user_id: ada, username: 'ada' },
      ...{ key_id: 'key_1', fingerprint: 'SHA256:x', remote_address: '127.0.0.1', login_node: 'login-1' },
      ...{ opened_at: '2030-01-01T00:00:00.000Z', closed_at: '2030-01-01T00:00:01.000Z' },
      ...{ bytes_up: 1, bytes_down: 1, shells: 0, file_transfers: 0, command_count: 1, forward_count: 0 },
      ...{ end_reason: `closed for ${bob}`, commands: JSON.stringify([`mail "${bob}"`]), forwards: '[]' },
    };
    await service.app.store.write(({ db }) => db.insertInto('ssh_sessions').values(session).execute());
    const email = 'robert@physics.example';
    const change = await service.put('root', `/operator/people/${id}/email`, { email });
    assert.equal(change.body.primary_email, email);

    const erase = (userId: string) =>
      service.write(`/operator/people/${userId}/erase`, { as: 'root', reason: `wish of ${bob}` });
    const early = /robert@physics\.example is active\. Deactivate the account first/;
    refused(await erase(id), 409, 'invalid_state', early);
    await service.write(`/operator/people/${id}/deactivate`, { as: 'root' });
    const machine = await createMachine(t);
    const accessToken = await service.issuer.token('root');
    await machine.writeProfile([sessionAt(service.businessUrl, { accessToken })]);
    const run = await machine.run(['admin', 'person', 'erase', email, '--reason', `wish of ${bob}`]);
    assert.equal(run.status, 0, run.stderr);
    const again = await erase(id);
    assert.equal(again.status, 200, 'again changes nothing');
    assert.match(again.body.primary_email, /^erased-[0-9a-z]{26}@andromeda\.invalid$/);
    assert.equal(again.body.display_name, 'Erased person');

    await eventually(
      () => service.app.store.read.selectFrom('erasures').select('user_id').execute(),
      (left) => left.length === 0,
    );
    await eventually(
      async () => readFileSync(join(service.dataDir, 'data/andromeda.db-wal'), 'latin1').toLowerCase(),
      (log) => !log.includes('robert@') && !log.includes('subject-bob'),
    );
    const sessions = service.app.store.read.selectFrom('ssh_sessions').select(['end_reason', 'commands']);
    assert.deepEqual(await sessions.execute(), [
      { end_reason: 'closed for [erased]', commands: JSON.stringify(['mail "[erased]"']) },
    ]);
    // Neither has what was written about the second attempt, after it was erased.
    const { body } = await service.business('/operator/audit?limit=1000', { as: 'root' });
    const mentions = body.entries.filter((entry: object) => JSON.stringify(entry).includes(bob));
    assert.deepEqual(fieldsOf(mentions, 'operation'), []);
    const backup = join(service.dataDir, 'backup');
    const about = { madeAt: '2030-01-01T00:00:00.000Z', version: '1' };
    await writeBackup(join(service.dataDir, 'data'), backup, about);
    const bytes = readFileSync(backup, 'latin1').toLowerCase();
    for (const text of [bob, 'robert@', 'subject-bob', 'the laptop of bob', '"distinct"'])
      assert.equal(bytes.includes(text), false, `${text} is in a backup`);
    for (const text of ['robert@', 'subject-bob', 'laptop-of-robert'])
      assert.deepEqual(searchDatabase(service, text), []);
    const keys = await listRows(service.app.store.read, 'ssh_keys', { user_id: id });
    assert.deepEqual(fieldsOf(keys, 'label', 'created_from', 'last_used_from'), [[null, null, null]]);
    assert.deepEqual(searchDatabase(service, publicKey.split(' ')[1]?.toLowerCase() ?? ''), []);
    if (name !== bob) assert.deepEqual(searchDatabase(service, name.toLowerCase()), []);
    const own = body.entries.filter(({ actor_user_id: actor }: { actor_user_id: string }) => actor === id);
    assert.ok(own.length > 0);
    for (const { source_address: address, reason, redaction } of own) {
      assert.deepEqual([address, reason], ['', '']);
      assert.ok(redaction);
    }
    const verified = await machine.run(['admin', 'audit', 'verify']);
    assert.equal(verified.status, 0, verified.stderr);
    assert.match(verified.stderr, /Texts of \d+ entries were replaced/);

    // Nothing of it is given again, and the account does not come back.
    const back = await service.write(`/operator/people/${id}/reactivate`, { as: 'root' });
    assert.equal(back.body.code, 'invalid_state');
    const given = { as: 'ada', body: { public_key: publicKey } };
    refused(await service.write('/me/ssh-keys', given), 409, 'invalid_state');
    const added = await service.write('/operator/people', { as: 'root', body: { email: bob } });
    assert.notEqual(added.body.id, id);
    const kept = await requireRow(service.app.store.read, 'organization_usernames', { user_id: id });
    assert.match(kept.username, /^(bob|erased-[0-9a-z]{16})$/);

    // Nor does the file itself, in space that is free.
    await service.app[Symbol.asyncDispose]();
    const file = readFileSync(join(service.dataDir, 'data/andromeda.db'), 'latin1').toLowerCase();
    for (const text of ['robert@', 'subject-bob', 'the laptop of bob', 'laptop-of-robert'])
      assert.equal(file.includes(text), false, `${text} is in the file`);
  },
);

test('a login name that was never used is in no list of a date either, once its person is erased', async () => {
  // In an organization that never had a Slurm cluster.
  const [, chemistry] = physics.organizations ?? [];
  const zoe = { email: 'zoe@chemistry.example', role: 'member' as const, username: 'zoe' };
  const members = [...(chemistry?.members ?? []), zoe];
  const organizations = [{ slug: 'chemistry', name: 'Chemistry', members }];
  await using service = await startTestApp({ lab: { ...physics, organizations, clusters: [] } });
  const { id } = await find(service, 'zoe@chemistry.example');
  const past = async () =>
    fieldsOf(await listRows(service.app.store.read, 'holdings', { user_id: id, kind: 'username' }), 'what');
  assert.deepEqual(await past(), ['zoe']);
  for (const step of ['deactivate', 'erase'])
    assert.equal((await service.write(`/operator/people/${id}/${step}`, { as: 'root' })).status, 200, step);
  assert.match((await past()).join(), /^erased-[0-9a-z]{16}$/);
});

test('an address that the issuer says anew is taken over, but never that of another account', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const { id } = (await service.business('/me', { as: 'bob' })).body.user;
  const signIn = async (email: string) => {
    service.advance(60_000);
    const token = await service.issuer.token('bob', { email });
    return (await service.business('/me', { token })).body.user;
  };
  assert.equal((await signIn('Robert@physics.example')).primary_email, 'robert@physics.example');
  assert.equal(await find(service, bob), undefined);
  const { body } = await service.business(`/operator/audit?person=${id}`, { as: 'root' });
  const entry = body.entries.find(({ operation }: { operation: string }) => operation === 'followEmail');
  assert.equal(entry.details, `${bob} → robert@physics.example`);

  // An account that waits for whoever has this address, and one that is in use.
  await service.write('/operator/people', { as: 'root', body: { email: 'invited@physics.example' } });
  for (const taken of ['invited@physics.example', 'ada@physics.example']) {
    const user = await signIn(taken);
    assert.deepEqual([user.id, user.primary_email], [id, 'robert@physics.example']);
  }
  const set = (email: string) => service.put('root', `/operator/people/${id}/email`, { email });
  refused(await set('INVITED@physics.example'), 409, 'invalid_state');
  // A token from before an operator's change does not take it back.
  const old = await service.issuer.token('bob', { email: 'robert@physics.example' });
  service.advance(5_000);
  await set('b@physics.example');
  assert.equal((await service.business('/me', { token: old })).body.user.primary_email, 'b@physics.example');
  // Domains are joined at the first sign-in only.
  const moved = await signIn('bob@chemistry.example');
  assert.equal(moved.primary_email, 'bob@chemistry.example');
  const token = await service.issuer.token('bob', { email: 'bob@chemistry.example' });
  assert.equal((await service.business('/me', { token })).body.memberships.length, 1);
});

test('an identity that was unbound opens the account no more, and rebinding gives it back', async (t) => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const token = await service.issuer.token('bob');
  await service.business('/me', { token });
  const machine = await createMachine(t);
  const accessToken = await service.issuer.token('root');
  await machine.writeProfile([sessionAt(service.businessUrl, { accessToken })]);
  const admin = (...args: string[]) => machine.run(['admin', 'person', ...args]);
  const unbound = await admin('unbind', bob);
  assert.equal(unbound.status, 0, unbound.stderr);
  assert.match(unbound.stderr, /subject-bob at \S+ is unbound.*\nThere are no identities/);
  assert.equal((await service.business('/me', { token })).status, 401);
  refused(await service.business('/me', { as: 'bob' }), 401, /This sign-in was taken from its account/);
  assert.match((await admin('unbind', bob)).stderr, /has no such identity/);
  // Another identity with the verified address is the person; no token counts from the minute after the change.
  service.advance(61_000);
  const other = await service.issuer.token('bob', { sub: 'subject-bob-2' });
  assert.equal((await service.business('/me', { token: other })).status, 200);
  const listed = await admin('identities', bob);
  assert.match(listed.stdout, /subject-bob-2/);
  assert.match(listed.stderr, /^subject-bob at \S+ is unbound/);
  const free = await admin('rebind', bob);
  assert.equal(free.status, 0, free.stderr);
  assert.doesNotMatch(free.stderr, /is unbound/);
  assert.equal((await service.business('/me', { token })).status, 401, 'a token from before');
  const back = await service.issuer.token('bob', {}, 500);
  assert.equal((await service.business('/me', { token: back })).status, 200);
  const own = await admin('unbind', 'root@physics.example');
  assert.match(own.stderr, /This is how you sign in yourself/);
  const changed = await admin('email', bob, 'robert@physics.example');
  assert.equal(changed.status, 0, changed.stderr);
  assert.match(changed.stdout, /robert@physics\.example/);
});

test('of what a person was called before, no operation leaves anything, whichever renamed them', async () => {
  const clock = { now: Date.now() };
  await using opened = await openTestStore(physics, () => clock.now);
  const { store, dataDir } = opened;
  const id = await userId(store, bob);
  const organizationId = (await findOrganizationBySlug(store.read, 'physics'))?.id ?? '';
  const issuer = 'https://login.physics.example';
  const former = [bob, 'roberto roe', 'bertie', 'subject-of-bob', 'another-of-bob'];
  await store.write(async (tx) => {
    await createIdentity(tx, { issuer, subject: 'subject-of-bob', userId: id });
    await unbindIdentity(tx, { issuer, subject: 'subject-of-bob', userId: id });
    await createIdentity(tx, { issuer, subject: 'another-of-bob', userId: id });
    await updateIdentityAt(tx, { issuer, subject: undefined, userId: id });
    await updateDisplayName(tx, { userId: id, displayName: 'Roberto Roe' });
    await updateDisplayName(tx, { userId: id, displayName: 'Bob Other' });
    await updateEmail(tx, { userId: id, email: 'second@physics.example' });
    await updateEmail(tx, { userId: id, email: 'third@physics.example' });
    for (const username of ['bertie', 'albert'])
      await updateUsername(tx, { organizationId, userId: id, username });
    await removeMembership(tx, { organizationId, userId: id });
    // Another account gets a former address: entries about that account keep it.
    const other = await createPerson(tx, { email: 'second@physics.example', displayName: 'Other' });
    const entry = { actorUserId: systemUserId, reason: '', result: 'done' } as const;
    for (const operation of auditOperations())
      await appendAuditEntry(tx, {
        ...{ ...entry, operation, target: former.join(), reason: former.join(), subjectUserId: id },
        details: `${bob} → second@physics.example, Roberto Roe, bertie, albert, subject-of-bob of ${issuer}, another-of-bob`,
      });
    const about = { operation: 'followEmail', target: other, subjectUserId: other };
    await appendAuditEntry(tx, { ...entry, ...about, details: 'x → second@physics.example' });
    await updateLifecycle(tx, { userId: id, state: 'deactivated' });
    await erasePerson(tx, id, () => 'mark');
  });
  const keys = auditKeys(dataDir);
  const deps = { store, key: () => keys().used, log: createLogger('silent'), now: Date.now };
  const erasures = startErasures(deps);
  await becomes(() => findErasure(store.read), undefined);
  await erasures.stop();
  const rows = await listRows(store.read, 'audit_entries', {});
  const theirs = rows.filter((row) => row.subject_user_id === id);
  assert.ok(theirs.length >= auditOperations().length);
  for (const name of [...former, 'second@physics.example', 'third@', 'albert']) {
    const left = theirs.filter((row) => JSON.stringify(row).toLowerCase().includes(name));
    assert.deepEqual(left, [], name);
  }
  assert.equal(rows.filter(({ details }) => details === 'x → second@physics.example').length, 1);
  assert.deepEqual(await listRows(store.read, 'former_names', {}), []);
});

test('what a stop leaves of an erasure, the next start does', async () => {
  const clock = { now: Date.now() };
  await using opened = await openTestStore(physics, () => clock.now);
  const { store, dataDir } = opened;
  const id = await userId(store, bob);
  await store.write(async (tx) => {
    for (let i = 0; i < 120; i++) await appendAuditEntry(tx, { ...testEntry(`for ${bob}`), actorUserId: id });
    await updateLifecycle(tx, { userId: id, state: 'deactivated' });
    await erasePerson(tx, id, () => 'mark');
  });
  const keys = auditKeys(dataDir);
  const deps = { store, key: () => keys().used, log: createLogger('silent'), now: Date.now };
  const mentions = async () => {
    const rows = await store.read.selectFrom('audit_entries').select('target').execute();
    return rows.filter(({ target }) => target.includes(bob)).length;
  };
  const first = startErasures(deps);
  await eventually(mentions, (count) => count < 120);
  await first.stop();
  const second = startErasures(deps);
  await becomes(() => findErasure(store.read), undefined);
  await second.stop();
  assert.equal(await mentions(), 0);
  if (!isOnFile) return;
  using inspection = inspectDatabase(join(dataDir, 'andromeda.db'));
  assert.equal((await inspection.auditTrail()).fault, undefined);
});

test('an erased person does not join by the domain again, unless they are added', async () => {
  await using service = await startTestApp({ lab: { ...physics, clusters: [] } });
  const email = 'dan@chemistry.example';
  const signIn = async (sub: string, as = email) =>
    (await service.business('/me', { token: await service.issuer.token('dan', { sub, email: as }) })).status;
  assert.equal(await signIn('dan-1'), 200);
  const { id } = await find(service, email);
  for (const what of ['deactivate', 'erase']) {
    const { status } = await service.write(`/operator/people/${id}/${what}`, { as: 'root' });
    assert.equal(status, 200);
  }
  assert.equal(await signIn('dan-1'), 401);
  assert.equal(await signIn('dan-1', 'dana@chemistry.example'), 401, 'with another address neither');
  const rows = await service.app.store.read.selectFrom('unbound_identities').selectAll().execute();
  assert.deepEqual([rows.length, JSON.stringify(rows).includes('dan')], [1, false]);
  await service.write('/operator/people', { as: 'root', body: { email: 'dana@chemistry.example' } });
  assert.equal(await signIn('dan-1', 'dana@chemistry.example'), 200);
  assert.equal(await signIn('dan-2'), 200, 'another identity is somebody else');

  // The same goes for an identity that was taken from the account before.
  const { id: other } = await find(service, email);
  const identity = { issuer: service.issuer.url, subject: 'dan-2' };
  for (const [what, body] of [['identities/unbind', identity], ['deactivate'], ['erase']] as const) {
    const { status } = await service.write(`/operator/people/${other}/${what}`, { as: 'root', body });
    assert.equal(status, 200, what);
  }
  assert.equal(await signIn('dan-2'), 401);
});
