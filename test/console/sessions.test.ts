import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import type { IssuerClient, Tokens } from '../../src/console/server/issuer-client.ts';
import { createSessions, idleMs, longestMs } from '../../src/console/server/sessions.ts';
import { DomainError } from '../../src/domain/error.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createPerson } from '../../src/store/people/people.ts';
import { becomes } from '../support/app.ts';
import { openTestStore } from '../support/store.ts';

const minute = 60_000;

/** Sessions on a real store, an issuer that counts, and a clock. */
async function startSessions() {
  const world = {
    now: Date.now(),
    /** Refreshes that were asked for, when they are answered, and those that were. */
    asked: 0,
    answered: undefined as Promise<void> | undefined,
    refreshed: 0,
    refuse: false,
    away: false,
    deactivated: false,
  };
  const opened = await openTestStore(undefined, () => world.now);
  const { store } = opened;
  const profile = { email: 'ada@physics.example', displayName: 'Ada', preferredUsername: undefined };
  const userId = await store.write((tx) => createPerson(tx, profile));
  const tokens = (number: number): Tokens => ({
    accessToken: `access-${number}`,
    refreshToken: `refresh-${number}`,
    idToken: 'id',
    expiresIn: 600,
    signedInAt: undefined,
  });
  const issuer = {
    async refresh() {
      world.asked += 1;
      await (world.answered ?? new Promise((done) => setTimeout(done, 20)));
      if (world.away) throw new DomainError('integration_unavailable', 'away');
      if (world.refuse) throw new DomainError('unauthorized', 'refused');
      world.refreshed += 1;
      return tokens(world.refreshed);
    },
  } as unknown as IssuerClient;
  const server = (beforeWrite: () => void | Promise<void> = () => {}) => {
    const write: typeof store.write = async (...given) => {
      await beforeWrite();
      return store.write(...given);
    };
    const sessions = createSessions({
      store: { ...store, write },
      issuer,
      async authenticate() {
        if (world.deactivated) throw new DomainError('unauthorized', 'This account is deactivated.');
        return userId;
      },
      secure: true,
      log: createLogger('silent'),
      now: () => world.now,
    });
    const use = (cookie: string, kind = 'active') =>
      sessions.of({
        headers: { cookie: cookie.split(';')[0], 'x-andromeda-console': kind },
      } as unknown as IncomingMessage);
    return { sessions, use };
  };
  const { sessions, use } = server();
  const open = async () => {
    const { cookie } = await sessions.create(tokens(0), { address: '127.0.0.1', program: 'test' });
    return cookie;
  };
  return {
    store,
    /** Another one, on the same store; `beforeWrite` can hold its writes back. */
    server,
    userId,
    world,
    open,
    use,
    sessions,
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

const refused = { code: 'unauthorized' };

test('over TLS no other host, no script and no plain connection can have set the cookie', async () => {
  await using test = await startSessions();
  assert.match(
    await test.open(),
    /^__Host-Http-andromeda-console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$/,
  );
});

test('a session ends after an hour without use, and what a page reads by itself is no use', async () => {
  await using test = await startSessions();
  const { world, use } = test;
  const used = await test.open();
  const left = await test.open();
  for (let passed = 0; passed < idleMs; passed += 30 * minute) {
    world.now += 30 * minute;
    await use(used);
    if (passed < idleMs - 30 * minute) await use(left, 'idle');
  }
  await assert.rejects(use(left, 'idle'), refused);
  await use(used);
});

test('a session ends after twelve hours, however used', async () => {
  await using test = await startSessions();
  const { world, use } = test;
  const cookie = await test.open();
  const end = world.now + longestMs;
  while (world.now + 30 * minute < end) {
    world.now += 30 * minute;
    await use(cookie);
  }
  world.now = end;
  await assert.rejects(use(cookie), refused);
});

test('tokens are renewed once for all requests that wait, and an issuer that is away ends nothing', async () => {
  await using test = await startSessions();
  const { world, use } = test;
  const cookie = await test.open();
  world.now += 10 * minute;
  world.away = true;
  await assert.rejects(use(cookie), { code: 'integration_unavailable' });
  world.away = false;
  const all = await Promise.all(Array.from({ length: 10 }, () => use(cookie)));
  assert.equal(world.refreshed, 1);
  assert.deepEqual([...new Set(all.map((one) => one.authorization))], ['Bearer access-1']);
  world.now += 10 * minute;
  world.refuse = true;
  await assert.rejects(use(cookie), refused);
  world.refuse = false;
  await assert.rejects(use(cookie), refused, 'it is over for good');
});

test('a server that renews tokens from a slow issuer is waited for: no refresh token is used twice', async () => {
  await using test = await startSessions();
  const { world, use } = test;
  let claims = 0;
  const other = test.server(() => {
    claims += 1;
  });
  const cookie = await test.open();
  world.now += 10 * minute;
  const answer = Promise.withResolvers<void>();
  world.answered = answer.promise;
  const first = use(cookie);
  await becomes(() => world.asked, 1);
  // Two requests, of ten seconds at most each.
  world.now += 20_500;
  const second = other.use(cookie);
  // The first is refused to it, and it comes back.
  await becomes(() => claims === 2 || world.asked === 2, true);
  answer.resolve();
  await Promise.all([first, second]);
  assert.equal(world.asked, 1);
});

test('a server that reads tokens just before another one renews them uses no refresh token twice', async () => {
  await using test = await startSessions();
  const { world, use } = test;
  const [claiming, renewed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = test.server(() => {
    claiming.resolve();
    return renewed.promise;
  });
  const cookie = await test.open();
  world.now += 10 * minute;
  const late = slow.use(cookie);
  await claiming.promise;
  const { authorization } = await use(cookie);
  renewed.resolve();
  assert.equal((await late).authorization, authorization);
  assert.equal(world.asked, 1);
});

test('who is deactivated is signed out, and stays so', async () => {
  await using test = await startSessions();
  const cookie = await test.open();
  test.world.deactivated = true;
  await assert.rejects(test.use(cookie), refused);
  test.world.deactivated = false;
  await assert.rejects(test.use(cookie), refused);
});

test('an open stream asks whether the person counts, also when the token that it began with has ended', async () => {
  await using test = await startSessions();
  const { world, use, sessions } = test;
  const session = await use(await test.open());
  assert.equal(await sessions.isOpen(session), true);
  world.now += 10 * minute;
  world.away = true;
  await assert.rejects(sessions.isOpen(session), { code: 'integration_unavailable' });
  world.away = false;
  assert.equal(await sessions.isOpen(session), true);
  assert.equal(world.refreshed, 1);
  world.now += 10 * minute;
  // A new password: the issuer gives no token for the old sign-in.
  world.refuse = true;
  assert.equal(await sessions.isOpen(session), false);
  world.refuse = false;
  assert.equal(await sessions.isOpen(session), false, 'it is over for good');
  const other = await use(await test.open());
  world.now += 10 * minute;
  world.deactivated = true;
  assert.equal(await sessions.isOpen(other), false);
});

test('a person has twenty sessions; the one that was used least recently goes for a new one', async () => {
  await using test = await startSessions();
  const first = await test.open();
  test.world.now += 2 * minute;
  const second = await test.open();
  for (let count = 0; count < 18; count += 1) await test.open();
  test.world.now += 2 * minute;
  await test.use(second);
  await test.open();
  await assert.rejects(test.use(first), refused);
  await test.use(second);
});

test('a reader of the database cannot use what is in it', async () => {
  await using test = await startSessions();
  await test.open();
  const rows = await test.store.read.selectFrom('console_sessions').selectAll().execute();
  assert.doesNotMatch(JSON.stringify(rows), /access-|refresh-/);
  const [{ id = '' } = {}] = rows;
  await assert.rejects(test.use(`__Host-Http-andromeda-console=${id}`), refused);
});
