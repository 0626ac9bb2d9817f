/** Refreshes on bad days: the answer is lost, the token is stolen, the disk is full. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { sql } from 'kysely';
import { repeatSeconds } from '../../../src/api/identity/issuer/adapter.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';
import { listRows } from '../../../src/store/engine/rows.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { fieldsOf } from '../../support/fields.ts';
import { freePorts } from '../../support/ports.ts';
import { testOnFile } from '../../support/store.ts';
import { addAda, cli, deviceGrant, post, refresh, signIn, startHarness } from './harness.ts';

const program = new URL('killable-issuer.ts', import.meta.url).pathname;

async function startKillable(port: number, dataDir: string) {
  const child = spawn(process.execPath, [program, String(port), dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), exited.then(() => assert.fail('it did not start'))]);
  return { child, exited, [Symbol.asyncDispose]: async () => void (child.kill('SIGKILL') && (await exited)) };
}

async function placeAda(dataDir: string): Promise<{ port: number; url: string }> {
  const store = await openStore(dataDir);
  await addAda(store);
  await store.close();
  const [port = 0] = await freePorts(1);
  return { port, url: `http://127.0.0.1:${port}` };
}

test('a session outlives kill -9 between the write of a refresh and its answer', async () => {
  using directory = temporaryDirectory();
  const { port, url } = await placeAda(directory.path);
  let token: unknown;
  {
    await using issuer = await startKillable(port, directory.path);
    token = (await signIn(url)).refresh_token;
    const fields = { grant_type: 'refresh_token', refresh_token: String(token), client_id: cli };
    const body = new URLSearchParams(fields);
    await assert.rejects(fetch(`${url}/token`, { method: 'POST', body, headers: { 'x-die': 'now' } }));
    assert.deepEqual(await issuer.exited, [null, 'SIGKILL']);
  }
  await using _issuer = await startKillable(port, directory.path);
  const again = await refresh(url, token);
  assert.equal(again.status, 200, JSON.stringify(again.body));
  assert.equal((await refresh(url, again.body.refresh_token)).status, 200);
});

test('a request that a server reads only when its client has long gone to another server uses nothing twice', async () => {
  using directory = temporaryDirectory();
  const { port, url } = await placeAda(directory.path);
  await using issuer = await startKillable(port, directory.path);
  const { refresh_token: first } = await signIn(url);
  // As by way of another server, while this one stood still.
  const second = await refresh(url, first);
  const third = await refresh(url, second.body.refresh_token);
  issuer.child.kill('SIGSTOP');
  const late = connect(port, '127.0.0.1');
  await once(late, 'connect');
  const body = `grant_type=refresh_token&refresh_token=${first}&client_id=${cli}`;
  late.end(
    `POST /token HTTP/1.1\r\nHost: late\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await once(late, 'finish');
  const closed = new Promise((done) => late.on('error', () => {}).once('close', done));
  issuer.child.kill('SIGCONT');
  late.resume();
  await closed;
  assert.equal((await refresh(url, third.body.refresh_token)).status, 200);
});

test('NUL in a form or an address of the issuer is answered as any other nonsense', async () => {
  await using harness = await startHarness();
  const fields = { email: 'a\0@physics.example', password: 'x', csrf: 'x' };
  const send = (path: string) =>
    fetch(harness.url + path, { method: 'POST', body: new URLSearchParams(fields) });
  for (const path of ['/device/sign-in', '/auth/sign-in', '/password'])
    assert.equal((await send(path)).status, 400, path);
  assert.equal((await refresh(harness.url, 'a\0b')).status, 400);
  assert.equal((await refresh(harness.url, 'x', 'a\0b')).status, 401);
  const nul = { grant_type: deviceGrant, client_id: cli, device_code: 'a\0b' };
  assert.equal((await post(harness.url, '/token', nul)).status, 400);
  for (const path of ['/auth?client_id=%00', '/device?user_code=%00', '/session/end?id_token_hint=%00'])
    assert.ok((await fetch(harness.url + path, { redirect: 'manual' })).status < 500, path);
});

test('a refresh token that is sent again within the grace gets the same successor, also at the same time', async () => {
  await using harness = await startHarness();
  const { refresh_token: token } = await signIn(harness.url);
  const answers = await Promise.all([1, 2, 3, 4].map(() => refresh(harness.url, token)));
  answers.push(await refresh(harness.url, token));
  const successors = new Set(answers.map(({ body }) => body.refresh_token));
  assert.deepEqual(
    fieldsOf(answers, 'status'),
    answers.map(() => 200),
  );
  assert.equal(successors.size, 1, 'one family');
  assert.ok(!successors.has(token));
  const tokens = await listRows(harness.store.read, 'issuer_records', { model: 'RefreshToken' });
  assert.equal(tokens.length, 2);
});

test('a used refresh token ends the session after the grace, whichever way the clock went', async () => {
  for (const seconds of [repeatSeconds + 1, -repeatSeconds - 60]) {
    await using harness = await startHarness();
    const { store, url } = harness;
    const { refresh_token: token } = await signIn(url);
    const { body } = await refresh(url, token);
    // The clock is the database's, which nobody here can set.
    await store.write(({ db }) =>
      db
        .updateTable('issuer_records')
        .set((eb) => ({ consumed_at: eb('consumed_at', '-', seconds) }))
        .where('model', '=', 'RefreshToken')
        .where('consumed_at', 'is not', null)
        .execute(),
    );
    assert.equal((await refresh(url, token)).body.error, 'invalid_grant');
    assert.equal((await refresh(url, body.refresh_token)).body.error, 'invalid_grant');
    assert.ok(harness.log.some((line) => line.includes('issuer.token.reused')));
  }
});

testOnFile('on a full disk a refresh is told to come back, and works when there is room', async () => {
  await using harness = await startHarness();
  const { store, url } = harness;
  let { refresh_token: token } = await signIn(url);
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(store.read);
  const limit = (pages: number) =>
    store.write(({ db }) => sql`pragma max_page_count = ${sql.lit(pages)}`.execute(db));
  await limit(rows[0]?.page_count ?? 1);
  let answer = await refresh(url, token);
  for (let tries = 0; answer.status === 200 && tries < 200; tries++) {
    token = answer.body.refresh_token;
    answer = await refresh(url, token);
  }
  assert.deepEqual([answer.status, answer.body.error], [503, 'temporarily_unavailable']);
  assert.match(String(answer.body.error_description), /Nothing was changed; try again/);
  assert.ok(harness.log.some((line) => line.includes('issuer.request.failed')));
  await limit(1_000_000);
  assert.equal((await refresh(url, token)).status, 200);
});
