/** Everyone with access, as one read: in the order and with the filter asked for, as a page and as a file. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { alpha, beta, physics, startTestApp, type TestApp } from '../support/app.ts';

const lab = {
  ...physics,
  grants: [
    {
      ...{ user: 'guest@far.example', cluster: 'beta', namespace: 'ml' },
      ...{ relation: 'kubernetes.developer' as const, expiresAt: '2999-01-01T00:00:00Z' },
    },
  ],
};

let app: TestApp;
let path: string;
before(async () => {
  app = await startTestApp({ lab });
  const { body: me } = await app.business('/me', { as: 'ada' });
  path = `/organizations/${me.default_org_id}/access-review`;
});
after(() => app[Symbol.asyncDispose]());

async function review(query = '', as = 'ada') {
  const { status, body } = await app.business(`${path}?${query}`, { as });
  assert.equal(status, 200, JSON.stringify(body));
  return { ...body, emails: body.people.map(({ email }: { email: string }) => email.split('@')[0]) };
}

test('members and people with a grant only are in one list, with what each holds and until when', async () => {
  const { people, total, counts, shows_access: showsAccess } = await review('sort=email');
  assert.deepEqual([total, showsAccess], [4, true]);
  assert.deepEqual(counts, { people: 4, members: 3, managers: 1, ssh: 2 });
  const [ada, bob, eve, guest] = people;
  assert.deepEqual([ada.role, ada.permissions, ada.grants], ['owner', [], []]);
  assert.deepEqual(bob.permissions, ['clusters.read', 'clusters.ssh']);
  assert.deepEqual([eve.is_member, eve.permissions], [true, []]);
  assert.deepEqual([guest.is_member, guest.role], [false, undefined]);
  const [grant] = guest.grants;
  assert.deepEqual([grant.cluster_name, grant.scope, grant.relation], ['beta', 'ml', 'kubernetes.developer']);
  assert.equal(Date.parse(grant.expires_at), Date.parse('2999-01-01T00:00:00Z'));
});

test('it is filtered, sorted and cut by the server; who lacks what it is sorted by comes last', async () => {
  assert.deepEqual((await review('sort=clusters.ssh')).emails, ['ada', 'bob', 'eve', 'guest']);
  const descending = await review('sort=clusters.ssh&order=descending');
  assert.deepEqual(descending.emails, ['bob', 'ada', 'eve', 'guest']);
  assert.deepEqual((await review('sort=ends')).emails[0], 'guest');
  assert.deepEqual((await review('filter=beta/ML')).emails, ['guest']);
  const filtered = await review('filter=clusters.ssh');
  assert.deepEqual([filtered.emails, filtered.total, filtered.counts.people], [['bob'], 1, 4]);
  const first = await review('sort=email&limit=3');
  assert.deepEqual([first.emails, first.total], [['ada', 'bob', 'eve'], 4]);
  const last = await review(`sort=email&limit=3&after=${first.next_page_token}`);
  assert.deepEqual([last.emails, last.next_page_token], [['guest'], undefined]);
});

test('of a cluster it has only people with a way in, with their accounts', async () => {
  const ofAlpha = await review(`cluster=${alpha}&sort=email`);
  assert.deepEqual(ofAlpha.emails, ['ada', 'bob']);
  assert.deepEqual(ofAlpha.counts, { people: 2, members: 2, managers: 1, ssh: 2 });
  assert.equal(ofAlpha.people[1].account, 'waiting_for_key');
  const ofBeta = await review(`cluster=${beta}&sort=email`);
  assert.deepEqual(ofBeta.emails, ['ada', 'bob', 'guest']);
  assert.deepEqual(ofBeta.people[2].ways[0].opens, 'kubernetes');
  assert.equal((await app.business(`${path}?cluster=${crypto.randomUUID()}`, { as: 'ada' })).status, 404);
});

test('the file has all of them, made of the same read; of a cluster, a line for each way in', async () => {
  const file = async (query: string) => {
    const headers = { authorization: `Bearer ${await app.issuer.token('ada')}` };
    const response = await fetch(`${app.businessUrl}${path}/csv?${query}`, { headers });
    assert.equal(response.headers.get('content-type'), 'text/csv; charset=utf-8');
    return (await response.text()).trimEnd().split('\r\n');
  };
  const [head = '', ...lines] = await file('sort=email');
  assert.match(head, /^"name","address","user name","role",.*"clusters.ssh",.*"grants","until"$/);
  assert.deepEqual(lines.length, 4);
  assert.match(lines[3] ?? '', /"guest@far.example","","not a member".*"beta\/ml: developer 2999-/);
  const ways = await file(`cluster=${beta}&sort=email`);
  assert.match(ways.at(-1) ?? '', /^"beta".*"kubernetes","grant","grant: developer in ml"/);
});

test('a member who may not grant gets the members and nothing of what they hold', async () => {
  const { people, counts, shows_access: showsAccess } = await review('', 'bob');
  assert.deepEqual([people.length, showsAccess, counts.ssh], [3, false, undefined]);
  for (const one of people) {
    for (const field of ['permissions', 'grants', 'last_sign_in_at', 'ways']) assert.ok(!(field in one));
  }
  assert.equal((await app.business(`${path}?cluster=${alpha}`, { as: 'bob' })).status, 403);
  assert.equal((await review('', 'root')).shows_access, true);
});

test('a long answer to a read is compressed for clients that take it, and for no others', async () => {
  const [plain, zipped] = [await raw('identity'), await raw('br, gzip;q=0.5')];
  assert.equal(plain.encoding, undefined);
  assert.equal(zipped.encoding, 'gzip');
  assert.deepEqual(gunzipSync(zipped.bytes), plain.bytes);
  assert.ok(zipped.bytes.length < plain.bytes.length / 2);
  assert.equal((await raw('gzip;q=0')).encoding, undefined);
});

async function raw(accepted: string): Promise<{ encoding: string | undefined; bytes: Buffer }> {
  const headers = { authorization: `Bearer ${await app.issuer.token('ada')}`, 'accept-encoding': accepted };
  return new Promise((resolve, reject) => {
    const asking = request(`${app.businessUrl}/permission-profiles`, { headers }, async (response) => {
      const bytes = Buffer.concat(await response.toArray());
      resolve({ encoding: response.headers['content-encoding'], bytes });
    });
    asking.on('error', reject).end();
  });
}

test('as it was at a time: who came and went since, and nothing from before it is known', async () => {
  const org = path.replace('/access-review', '');
  const bob = (await app.business('/me', { as: 'bob' })).body.user.id;
  const at = (time: number, as = 'ada', more = '') =>
    app.business(`${path}?sort=email&at=${new Date(time).toISOString()}${more}`, { as });
  const first = Date.now();
  app.advance(3_600_000);
  assert.equal((await app.write(`${org}/members/${bob}/remove`, { as: 'ada' })).status, 200);
  app.advance(3_600_000);
  const now = Date.now() + 7_200_000;
  const then = await at(first);
  assert.equal(then.status, 200, JSON.stringify(then.body));
  const held = (one: { email: string; permissions: string[] }) => [one.email, one.permissions];
  assert.deepEqual(then.body.people.map(held), [
    ['ada@physics.example', []],
    ['bob@physics.example', ['clusters.read', 'clusters.ssh']],
    ['eve@physics.example', []],
    ['guest@far.example', []],
  ]);
  assert.equal(then.body.people[3].grants[0].scope, 'ml');
  assert.equal((await at(now - 1_000)).body.total, 3);
  const csv = await app.business(`${path}/csv?at=${new Date(first).toISOString()}`, { as: 'ada' });
  assert.match(String(csv.body), /bob@physics\.example/);

  assert.match((await at(now + 3_600_000)).body.message, /at is to come/);
  assert.match((await at(Date.parse('2001-01-01'))).body.message, /Who had access is known from \S+ on/);
  assert.equal((await at(first, 'eve')).status, 403);
  assert.match((await at(first, 'ada', `&cluster=${beta}`)).body.message, /ways in are known of the present/);
});
