/** SCIM against the whole service. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, startTestApp, type TestApp } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { sshPerson } from '../support/ssh-person.ts';

async function start() {
  const service = await startTestApp({ identity: { scim: true } });
  const { status, body } = await service.write('/operator/scim/tokens', { as: 'root', body: {} });
  assert.equal(status, 201, JSON.stringify(body));
  return { service, scim: caller(service, body.token), token: body.token as string };
}

function caller({ business }: TestApp, token: string) {
  return (path: string, method = 'GET', body?: unknown, headers: Record<string, string> = {}) =>
    business(`/scim/v2${path}`, {
      token,
      method,
      body,
      headers: { ...(body !== undefined && { 'content-type': 'application/scim+json' }), ...headers },
    });
}

const person = (name: string, more: object = {}) => ({
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
  userName: `${name}@physics.example`,
  externalId: `ext-${name}`,
  name: { formatted: `Dr ${name}`, givenName: name, familyName: 'Jensen' },
  emails: [{ value: `${name}@physics.example`, type: 'work', primary: true }],
  ...more,
});
const patchOf = (...Operations: object[]) => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations,
});

test('without the setting, nothing answers to SCIM', async () => {
  await using service = await startTestApp();
  assert.equal((await service.business('/scim/v2/Users', { as: 'root' })).status, 404);
});

test('tokens are valid two at a time, shown once, kept as hashes, replaced and revoked', async () => {
  const { service, scim, token } = await start();
  await using _ = service;
  const make = (body: object, key?: string) =>
    service.write('/operator/scim/tokens', { as: 'root', body, ...(key && { key }) });
  assert.equal((await service.write('/operator/scim/tokens', { as: 'ada', body: {} })).status, 403);
  const second = await make({}, 'second');
  assert.equal((await make({}, 'second')).status, 409);
  assert.equal((await make({})).status, 409);
  for (const one of [token, second.body.token])
    assert.equal((await caller(service, one)('/Users')).status, 200);
  const third = await make({ replace: true });
  assert.equal((await scim('/Users')).status, 401);
  assert.equal((await caller(service, third.body.token)('/Users')).status, 200);
  const { read } = service.app.store;
  const kept = JSON.stringify([
    await read.selectFrom('scim_tokens').selectAll().execute(),
    await read.selectFrom('commands').selectAll().execute(),
  ]);
  assert.ok(!kept.includes(third.body.token));
  assert.equal((await service.write('/operator/scim/tokens/revoke', { as: 'root' })).status, 200);
  assert.equal((await caller(service, third.body.token)('/Users')).status, 401);
});

test('wrong tokens are 401, and 429 after some, and a person’s token is none', async () => {
  const { service, scim } = await start();
  await using _ = service;
  const refused = await service.business('/scim/v2/Users', { as: 'root' });
  assert.equal(refused.status, 401);
  assert.equal(refused.headers.get('www-authenticate'), 'Bearer');
  assert.deepEqual(refused.body.schemas, ['urn:ietf:params:scim:api:messages:2.0:Error']);
  assert.equal(refused.body.status, '401');
  for (let tries = 0; tries < 12; tries++) await caller(service, 'x'.repeat(40))('/Users');
  assert.equal((await caller(service, 'x'.repeat(40))('/Users')).status, 429);
  assert.equal((await scim('/Users')).status, 200);
});

test('a person is made, found, changed with ETags, and listed in pages', async () => {
  const { service, scim } = await start();
  await using _ = service;
  const made = await scim('/Users', 'POST', person('babs'));
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { id, meta } = made.body;
  assert.equal(made.headers.get('location'), `${service.businessUrl}/scim/v2/Users/${id}`);
  assert.equal(made.headers.get('etag'), meta.version);
  assert.match(made.headers.get('content-type') ?? '', /scim\+json/);
  assert.deepEqual([made.body.active, made.body.externalId], [true, 'ext-babs']);
  const again = await scim('/Users', 'POST', person('babs'));
  assert.deepEqual([again.status, again.body.scimType], [409, 'uniqueness']);

  const stale = await scim(`/Users/${id}`, 'PUT', person('babs', { title: 'Guide' }), {
    'if-match': 'W/"old"',
  });
  assert.equal(stale.status, 412);
  const put = await scim(`/Users/${id}`, 'PUT', person('babs', { title: 'Guide' }), {
    'if-match': meta.version,
  });
  assert.deepEqual([put.status, put.body.title], [200, 'Guide']);
  assert.notEqual(put.body.meta.version, meta.version);
  const same = await scim(`/Users/${id}`, 'GET', undefined, { 'if-none-match': put.body.meta.version });
  assert.equal(same.status, 304);

  const moved = await scim(
    `/Users/${id}`,
    'PATCH',
    patchOf({ op: 'replace', path: 'emails[type eq "work"].value', value: 'Barbara@physics.example' }),
  );
  assert.equal(moved.status, 200, JSON.stringify(moved.body));
  const people = await service.business('/operator/people?email=barbara@physics.example', { as: 'root' });
  assert.deepEqual([people.body.people[0].id, people.body.people[0].display_name], [id, 'Dr babs']);
  const taken = await scim(
    `/Users/${id}`,
    'PATCH',
    patchOf({ op: 'replace', path: 'emails', value: [{ value: 'ada@physics.example' }] }),
  );
  assert.deepEqual([taken.status, taken.body.scimType], [409, 'uniqueness']);

  for (const name of ['p1', 'p2', 'p3']) await scim('/Users', 'POST', person(name));
  const page = await scim('/Users?startIndex=2&count=2');
  assert.deepEqual([page.body.totalResults, page.body.itemsPerPage, page.body.startIndex], [4, 2, 2]);
  const found = await scim(
    `/Users?filter=${encodeURIComponent('userName sw "p" and not (userName co "2")')}&attributes=userName&count=1`,
  );
  assert.equal(found.body.totalResults, 2);
  assert.deepEqual(Object.keys(found.body.Resources[0]).sort(), ['id', 'meta', 'schemas', 'userName']);
  const one = await scim(`/Users?filter=${encodeURIComponent('userName eq "P3@PHYSICS.example"')}`);
  assert.equal(one.body.totalResults, 1);
  const external = await scim(`/Users?filter=${encodeURIComponent('externalId eq "ext-p2"')}`);
  assert.deepEqual(
    external.body.Resources.map(({ externalId }: { externalId: string }) => externalId),
    ['ext-p2'],
  );
  const bad = await scim(`/Users?filter=${encodeURIComponent('userName is')}`);
  assert.deepEqual([bad.status, bad.body.scimType, bad.body.status], [400, 'invalidFilter', '400']);
  assert.equal((await scim('/Users/user_00000000000000000000000000')).status, 404);
  assert.equal((await scim('/Users', 'POST', '{')).body.scimType, 'invalidSyntax');
  assert.equal((await scim('/Users', 'POST', { userName: 'nobody' })).body.scimType, 'invalidValue');
});

test('who is deactivated has their open SSH session ended within the second, and no new one', async () => {
  // Long intervals: it is the change that ends it, and no round that comes by.
  const service = await startTestApp({
    identity: { scim: true },
    gatewayLimits: { recheckSeconds: 60 },
    sync: { intervalSeconds: 60 },
  });
  await using _ = service;
  const { body } = await service.write('/operator/scim/tokens', { as: 'root', body: {} });
  const scim = caller(service, body.token);
  using bob = await sshPerson(service, 'bob');
  const made = await scim('/Users', 'POST', person('bob'));
  assert.equal(made.status, 201);
  const session = bob.start([bob.target, 'echo up; exec sleep 60']);
  await session.said;
  const off = patchOf({ op: 'replace', value: { active: false } });
  assert.equal((await scim(`/Users/${made.body.id}`, 'PATCH', off)).status, 200);
  assert.equal((await session.ended).status, 255);
  const open = await service.business('/operator/sessions', { as: 'root' });
  assert.deepEqual([open.status, open.body.sessions], [200, []]);
  assert.equal((await bob.ssh([bob.target, 'true'])).status, 255);
});

test('a person with an account is adopted; deactivated, they are out at once, and come back without what was taken', async () => {
  const { service, scim } = await start();
  await using _ = service;
  await service.write('/me/ssh-keys', { as: 'bob', body: { public_key: newPublicKey() } });
  const { body: bob } = await service.business('/me', { as: 'bob' });
  const made = await scim('/Users', 'POST', person('bob'));
  assert.deepEqual([made.status, made.body.id], [201, bob.id ?? bob.user_id ?? bob.user?.id]);
  const { id } = made.body;
  const off = await scim(`/Users/${id}`, 'PATCH', patchOf({ op: 'Replace', path: 'active', value: 'False' }));
  assert.deepEqual([off.status, off.body.active], [200, false]);
  assert.equal((await service.business('/me', { as: 'bob' })).status, 401);
  const { read } = service.app.store;
  const keys = () =>
    read.selectFrom('ssh_keys').select('lifecycle_state').where('user_id', '=', id).execute();
  assert.deepEqual(await keys(), [{ lifecycle_state: 'revoked' }]);
  const on = await scim(`/Users/${id}`, 'PATCH', patchOf({ op: 'replace', value: { active: true } }));
  assert.equal(on.body.active, true);
  assert.equal((await service.business('/me', { as: 'bob' })).status, 200);
  assert.deepEqual(await keys(), [{ lifecycle_state: 'revoked' }]);
  assert.equal((await scim(`/Users/${id}`, 'DELETE')).status, 204);
  assert.equal((await scim(`/Users/${id}`)).status, 404);
  assert.equal((await service.business('/me', { as: 'bob' })).status, 401);

  const { body: trail } = await service.business('/operator/audit?limit=50', { as: 'root' });
  const entries = (
    trail.entries as { operation: string; actor_user_id: string; subject_user_id?: string }[]
  ).filter(({ operation }) => operation.startsWith('scim'));
  assert.deepEqual(entries.map(({ operation }) => operation).sort(), [
    'scimChangeUser',
    'scimCreateUser',
    'scimDeactivateUser',
    'scimDeleteUser',
  ]);
  for (const one of entries) {
    assert.equal(one.actor_user_id, 'user_00000000000000000000000000');
    assert.equal(one.subject_user_id, id);
  }
});

test('the last owner and the last operator are out as well, and the trail says what was left', async () => {
  const { service, scim } = await start();
  await using _ = service;
  const problems = async () => {
    const { body } = await service.business('/operator/problems', { as: 'root' });
    const all = body.problems as { area: string; about: string; message: string }[];
    return all.filter(({ area }) => area === 'identity').map(({ about, message }) => [about, message]);
  };
  assert.deepEqual(await problems(), []);
  for (const name of ['ada', 'root']) {
    const { body } = await scim('/Users', 'POST', person(name));
    assert.equal((await service.business('/me', { as: name })).status, 200);
    const off = await scim(`/Users/${body.id}`, 'PUT', person(name, { active: false }));
    assert.deepEqual([off.status, off.body.active], [200, false]);
    assert.equal((await service.business('/me', { as: name })).status, 401);
    const entry = await service.app.store.read
      .selectFrom('audit_entries')
      .select('details')
      .where('operation', '=', 'scimDeactivateUser')
      .where('subject_user_id', '=', body.id)
      .executeTakeFirstOrThrow();
    assert.match(entry.details ?? '', name === 'ada' ? /left: membership in/ : /left: staff keys/);
    if (name === 'root') continue;
    const message = 'ada@physics.example, its last owner, was deactivated by the identity provider.';
    assert.deepEqual(await problems(), [['physics', message]]);
  }
});

test('groups are kept with their members, also as Entra patches and asks for them', async () => {
  const { service, scim } = await start();
  await using _ = service;
  const [a, b] = await Promise.all(
    ['a', 'b'].map(async (name) => (await scim('/Users', 'POST', person(name))).body.id as string),
  );
  const schemas = ['urn:ietf:params:scim:schemas:core:2.0:Group'];
  const made = await scim('/Groups', 'POST', { schemas, displayName: 'Guides', members: [{ value: a }] });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const path = `/Groups/${made.body.id}`;
  const more = await scim(path, 'PATCH', patchOf({ op: 'Add', path: 'members', value: [{ value: b }] }));
  assert.deepEqual(
    more.body.members.map(({ value }: { value: string }) => value),
    [a, b].sort(),
  );
  const filter = encodeURIComponent(`id eq "${made.body.id}" and members eq "${b}"`);
  const asked = await scim(`/Groups?filter=${filter}&excludedAttributes=members`);
  assert.equal(asked.body.totalResults, 1);
  assert.equal('members' in asked.body.Resources[0], false);
  const less = await scim(path, 'PATCH', patchOf({ op: 'remove', path: `members[value eq "${a}"]` }));
  assert.deepEqual(
    less.body.members.map(({ value }: { value: string }) => value),
    [b],
  );
  const wrong = await scim(
    path,
    'PATCH',
    patchOf({ op: 'add', path: 'members', value: [{ value: 'nobody' }] }),
  );
  assert.deepEqual([wrong.status, wrong.body.scimType], [400, 'invalidValue']);
  await scim(`/Users/${b}`, 'DELETE');
  assert.deepEqual((await scim(path)).body.members, []);
  assert.equal((await scim(path, 'DELETE')).status, 204);
  assert.equal((await scim('/Groups')).body.totalResults, 0);
});

test('the service says what it can', async () => {
  const { service, scim } = await start();
  await using _ = service;
  const { body } = await scim('/ServiceProviderConfig');
  assert.deepEqual([body.patch.supported, body.bulk.supported, body.etag.supported], [true, false, true]);
  assert.equal((await scim('/ResourceTypes')).body.totalResults, 2);
  assert.equal((await scim('/ResourceTypes/User')).body.endpoint, '/Users');
  assert.equal((await scim('/Schemas/urn:ietf:params:scim:schemas:core:2.0:User')).body.name, 'User');
  assert.equal((await scim('/Me')).status, 501);
  assert.equal((await scim('/Nothing')).status, 404);
  assert.equal((await scim('/Users', 'PUT', {})).status, 405);
  const large = await scim('/Users', 'POST', person('big', { title: 'x'.repeat(40_000) }));
  assert.equal(large.body.scimType, 'tooMany');
  await eventually(
    () => scim('/Users', 'POST', `"${'x'.repeat(5 * 2 ** 20)}"`),
    ({ status }) => status === 413,
  );
});
