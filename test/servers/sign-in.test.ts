/** Sign-ins and pages behind a proxy that knows no stickiness: two servers are as one, also for whoever guesses. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { updateRows } from '../../src/store/engine/rows.ts';
import { setPassword } from '../../src/store/people/identities.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { type ConsoleApp, signIn } from '../console/harness.ts';
import {
  adaHash,
  answerDevice,
  createBrowser,
  type Device,
  ada as person,
  poll,
  refresh,
  startDevice,
} from '../identity/issuer/harness.ts';
import { becomes, eventually } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { type Front, startFront } from './front.ts';
import { noServers, openServersLab, type ServersLab } from './lab.ts';

interface Pair extends AsyncDisposable {
  lab: ServersLab;
  issuer: Front;
  console: Front;
}

/** Two servers with an embedded issuer and a console, behind one address for each. */
async function openPair(): Promise<Pair> {
  await using parts = new AsyncDisposableStack();
  const issuer = parts.use(await startFront());
  const console = parts.use(await startFront());
  const lab = parts.use(
    await openServersLab({
      gateway: { processes: 0 },
      config: ({ issuerListen, consoleListen }) => ({
        identity: { embedded: { listen: issuerListen, url: issuer.url } },
        console: { listen: consoleListen, url: console.url },
        trustedProxies: ['127.0.0.1'],
      }),
    }),
  );
  for (const name of ['a', 'b']) {
    const { issuerListen, consoleListen } = await lab.serve(name);
    issuer.servers.push(issuerListen);
    console.servers.push(consoleListen);
  }
  for (const name of ['ada', 'bob']) {
    const found = await findPersonByEmail(lab.store.read, `${name}@physics.example`);
    if (found) await lab.store.write((tx) => setPassword(tx, { userId: found.id, hash: adaHash }));
  }
  const opened = parts.move();
  return { lab, issuer, console, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

test('two servers are as one behind a proxy that knows no stickiness', { skip: noServers }, async () => {
  await using pair = await openPair();
  await walkConsole(pair);
  await walkDevice(pair);
  await guessEverywhere(pair);
});

/** A browser signs in across both, works on each, and sees on one what changes on the other. */
async function walkConsole({ console, issuer }: Pair): Promise<void> {
  // The console waits for the issuer for ten seconds only, which a busy machine can take.
  const bob = await eventually(
    () => signIn({ url: console.url } as ConsoleApp, 'bob').catch(() => undefined),
    (browser) => browser !== undefined,
  );
  assert.ok(bob);
  for (const server of [0, 1]) {
    console.only = server;
    const me = await bob.call('/api/business/me');
    assert.equal(me.status, 200);
    const body = (await me.json()) as { user: { primary_email: string } };
    assert.equal(body.user.primary_email, 'bob@physics.example');
  }
  console.only = 1;
  const stopping = new AbortController();
  const stream = await bob.call('/events', { signal: stopping.signal });
  let heard = '';
  const reading = (async () => {
    for await (const part of stream.body ?? []) heard += Buffer.from(part).toString();
  })().catch(() => {});
  await becomes(() => heard.includes('event: open'), true);
  const setShell = async (server: number) => {
    console.only = server;
    const answer = await bob.call('/api/business/me/login-preferences', {
      method: 'PUT',
      body: JSON.stringify({ shell: '/bin/zsh' }),
      headers: { 'content-type': 'application/json', 'Idempotency-Key': 'one', 'Audit-Reason': 'a test' },
    });
    return [answer.status, await answer.json()];
  };
  const changed = await setShell(0);
  assert.equal(changed[0], 200);
  await becomes(() => /event: changed\ndata: \[[^\]]*"me"/.test(heard), true);
  assert.deepEqual(await setShell(1), changed, 'the same request again is answered from what the other did');
  console.only = 0;
  const out = await bob.call('/sign-out', { method: 'POST' });
  assert.equal(out.status, 200);
  console.only = 1;
  await becomes(() => heard.includes('event: signed-out'), true);
  assert.equal((await bob.call('/session')).status, 401);
  stopping.abort();
  await reading;
  assert.equal(issuer.only, undefined, 'the issuer was asked in turn all the time');
}

/** Wrong passwords, user codes and polls count on both together. */
async function guessEverywhere({ lab, issuer }: Pair): Promise<void> {
  const device = await startDevice(issuer.url);
  const guesser = createBrowser(issuer.url, '127.0.0.5');
  const page = await guesser.visit(device.verification_uri_complete);
  const guess = (server: number) => {
    issuer.only = server;
    return guesser.submit(page, '/device/sign-in', { email: person.email, password: 'a wrong guess' });
  };
  for (const server of [0, 1, 0, 1, 0]) assert.equal((await guess(server)).status, 403);
  const counts = () =>
    lab.store.read
      .selectFrom('limit_counts')
      .select(['name', 'failures'])
      .where('failures', '>', 0)
      .execute();
  assert.deepEqual(fieldsOf(await counts(), 'name', 'failures').sort(), [
    ['sign-in from address', 5],
    ['sign-in to account', 5],
  ]);
  // As after some more, so that a slow machine is held back long enough to see it.
  await lab.store.write(({ db, now }) =>
    updateRows(db, 'limit_counts', { name: 'sign-in from address' }, { failures: 20, at: now }),
  );
  for (const server of [0, 1]) {
    const refused = await guess(server);
    assert.equal(refused.status, 429);
    assert.ok(Number(refused.headers.get('retry-after')) > 5);
  }

  // The account is held for all; an address that has not failed has one try, of whichever server.
  await lab.store.write(({ db, now }) =>
    updateRows(db, 'limit_counts', { name: 'sign-in to account' }, { failures: 60, at: now }),
  );
  const fresh = createBrowser(issuer.url, '127.0.0.7');
  issuer.only = 0;
  const form = await fresh.visit(device.verification_uri_complete);
  const guessFresh = () =>
    fresh.submit(form, '/device/sign-in', { email: person.email, password: 'a wrong guess' });
  assert.equal((await guessFresh()).status, 403);
  issuer.only = 1;
  assert.equal((await guessFresh()).status, 429);

  const other = createBrowser(issuer.url, '127.0.0.6');
  for (const server of [0, 1]) {
    issuer.only = server;
    assert.equal((await other.visit('/device?user_code=BBBB-BBBB')).status, 404);
  }
  await lab.store.write(async ({ db, now }) => {
    const held = { at: now + 600_000 };
    await db.updateTable('limit_counts').set(held).where('name', '=', 'wrong user codes').execute();
  });
  for (const server of [0, 1]) {
    issuer.only = server;
    assert.equal((await other.visit('/device?user_code=CCCC-CCCC')).status, 429);
  }

  const errorAt = async (server: number, asking: Device) => {
    issuer.only = server;
    return (await poll(issuer.url, asking)).body.error;
  };
  await eventually(
    async () => {
      const asking = await startDevice(issuer.url);
      return [await errorAt(0, asking), await errorAt(1, asking)];
    },
    ([first, second]) => first === 'authorization_pending' && second === 'slow_down',
  );
}

/** A device that began on one is answered on another, and its refresh token is good once for both. */
async function walkDevice({ issuer }: Pair): Promise<void> {
  const device: Device = await startDevice(issuer.url);
  await answerDevice(issuer.url, device);
  const { status, body } = await poll(issuer.url, device);
  assert.equal(status, 200, JSON.stringify(body));
  const renewed = [];
  for (const server of [0, 1]) {
    issuer.only = server;
    renewed.push((await refresh(issuer.url, body.refresh_token)).body.refresh_token);
  }
  assert.ok(renewed[0]);
  assert.equal(renewed[0], renewed[1], 'an answer that was lost is given again, by whichever server');
  const later = await refresh(issuer.url, renewed[0]);
  assert.equal(later.status, 200);
  issuer.only = 0;
  const reused = await refresh(issuer.url, body.refresh_token);
  assert.equal(reused.body.error, 'invalid_grant');
  issuer.only = 1;
  const stolen = await refresh(issuer.url, later.body.refresh_token);
  assert.equal(stolen.body.error, 'invalid_grant', 'the sign-in is over on both');
}
