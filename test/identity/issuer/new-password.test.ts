/** What a new password ends, and what it does not, however close in time. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import { createLocalJWKSet } from 'jose';
import { sql } from 'kysely';
import { createAuthenticator } from '../../../src/api/identity/index.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import { openSqlite } from '../../../src/store/engine/sqlite/index.ts';
import { migrations } from '../../../src/store/migrations/index.ts';
import { createIdentity, setPassword } from '../../../src/store/people/identities.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { ada, adaHash, audience, type Harness, refresh, signIn, startHarness } from './harness.ts';

function authenticatorOf({ store, issuer, url }: Harness) {
  const authenticate = createAuthenticator({
    markIdentity: () => '',
    store,
    rules: { issuer: url, audiences: [audience], type: 'at+jwt' },
    keys: createLocalJWKSet(issuer.jwks),
    userinfo: async () => ({}),
    isSignInOver: issuer.isSignInOver,
    now: Date.now,
  });
  return (token: unknown) => authenticate(`Bearer ${token}`, 'unauthorized');
}

test('of one moment: what was signed in to before a new password is over, and what came after is not', async () => {
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  try {
    await using harness = await startHarness();
    const { store, url } = harness;
    const authenticate = authenticatorOf(harness);
    await store.write((tx) => createIdentity(tx, { issuer: url, subject: ada.id, userId: ada.id }));
    const [used, unused] = [await signIn(url), await signIn(url)];
    assert.equal(await authenticate(used.access_token), ada.id);
    await store.write((tx) => setPassword(tx, { userId: ada.id, hash: adaHash }));
    for (const { access_token, refresh_token } of [used, unused]) {
      await assert.rejects(authenticate(access_token), /The password was changed since; sign in again/);
      assert.equal((await refresh(url, refresh_token)).body.error, 'invalid_grant');
      const me = await fetch(`${url}/me`, { headers: { authorization: `Bearer ${access_token}` } });
      assert.equal(me.status, 401);
    }
    const after = await signIn(url);
    assert.equal(await authenticate(after.access_token), ada.id);
    const refreshed = await refresh(url, after.refresh_token);
    assert.equal(await authenticate(refreshed.body.access_token), ada.id);
    // A clock that was set back makes no new sign-in one of before the password.
    mock.timers.setTime(Date.now() - 3_600_000);
    assert.equal(await authenticate((await signIn(url)).access_token), ada.id);
  } finally {
    mock.timers.reset();
  }
});

test('an upgrade ends no sign-in, and brings none back that a new password had ended', async () => {
  using directory = temporaryDirectory();
  const { writer, [Symbol.asyncDispose]: close } = openSqlite(join(directory.path, 'andromeda.db'));
  const record = (id: string, authTime: number) =>
    `insert into issuer_records (model, id, payload, grant_id) values ('RefreshToken', '${id}', '{"accountId":"user_1","authTime":${authTime}}', 'g')`;
  const at = '2026-01-01T00:00:10.900Z';
  const seconds = Math.floor(Date.parse(at) / 1000);
  try {
    const { Migrator } = await import('kysely/migration');
    const provider = { getMigrations: async () => migrations };
    await new Migrator({ db: writer, provider }).migrateTo('0009-bound-permissions');
    for (const text of [
      `insert into users values ('user_1', 'person', 'a@x.example', 'A', null, '/bin/bash', 'active', '${at}', '${at}')`,
      `insert into passwords (user_id, hash, updated_at) values ('user_1', 'x', '${at}')`,
      record('before', seconds - 1),
      record('after', seconds),
    ])
      await sql.raw(text).execute(writer);
  } finally {
    close();
  }
  const store = await openStore(directory.path);
  try {
    const left = await store.read.selectFrom('issuer_records').select('id').execute();
    assert.deepEqual(left, [{ id: 'after' }]);
    const { generation } = await store.read
      .selectFrom('passwords')
      .select('generation')
      .executeTakeFirstOrThrow();
    assert.equal(generation, 0);
  } finally {
    await store.close();
  }
});
