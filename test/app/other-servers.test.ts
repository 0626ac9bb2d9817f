/**
 * What servers ask of each other: answers are counted, only live ones are waited for, and nobody is waited for too long. A
 * recheck of all gateways is such a question.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Gateways } from '../../src/gateway/process/gateways.ts';
import type { SessionFilter } from '../../src/gateway/ssh/decision.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createAsking } from '../../src/service/compose/peers/asking.ts';
import { type AllGateways, joinGateways } from '../../src/service/compose/peers/gateways.ts';
import type { Store, Tx } from '../../src/store/engine/index.ts';
import { createMessages } from '../../src/store/engine/messages.ts';
import { insertRow, updateRows } from '../../src/store/engine/rows.ts';
import { enterServer } from '../../src/store/servers/servers.ts';
import { hearPasses } from '../../src/sync/index.ts';
import { eventually } from '../support/app.ts';
import { openTestStore } from '../support/store.ts';

interface Lab extends AsyncDisposable {
  /** Sends to all of them, in the name of a server of another version. */
  sayAsAnother(topic: string, body: unknown): void;
  /** What a server could make nothing of, by topic. */
  faults: string[];
  /** A server of that name, among the others from now on. */
  join(name: string): Promise<ReturnType<typeof createAsking>>;
  /** The same, with a gateway of its own. */
  joinWith(name: string, gateway: Partial<Gateways>, recheckMs?: number): Promise<AllGateways>;
  store: Store;
}

/** Several servers on one store: what one sends comes to all others, later. */
async function openLab(): Promise<Lab> {
  const opened = await openTestStore();
  const receivers = new Map<string, (topic: string, body: unknown, from: string) => void>();
  const faults: string[] = [];
  const parts = new AsyncDisposableStack();
  async function enter(name: string): Promise<Store> {
    const server = { id: `server_${name}`, isAlone: false };
    const send = async (topic: string, body: object) => {
      const text = JSON.stringify(body);
      for (const [id, receive] of receivers)
        if (id !== server.id) setImmediate(() => receive(topic, JSON.parse(text), server.id));
    };
    const { received, ...messages } = createMessages({ send }, (topic) => void faults.push(topic));
    receivers.set(server.id, received);
    await opened.store.write(async (tx) => {
      await enterServer({ ...tx, server } as Tx, { name, version: '1', directory: name, settings: {} });
      // Live for as long as the test takes.
      const seen = { seen_at: '2999-01-01T00:00:00.000Z' };
      await tx.db.updateTable('servers').set(seen).where('id', '=', server.id).execute();
    });
    return { ...opened.store, server, messages };
  }
  const log = createLogger('silent');
  return {
    store: opened.store,
    faults,
    sayAsAnother(topic, body) {
      for (const receive of receivers.values()) receive(topic, body, 'server_of_another_version');
    },
    async join(name) {
      const others = createAsking(await enter(name), log);
      parts.defer(() => others.stop());
      return others;
    },
    async joinWith(name, own, recheckMs = never) {
      const store = await enter(name);
      const gateway = { sessions: async () => [], ...own } as Gateways;
      const asking = createAsking(store, log);
      parts.defer(() => asking.stop());
      const peers = { ...asking, forOthers: <T>(make: () => T) => make() };
      return joinGateways(parts, { store, peers, gateway, log, recheckMs });
    },
    async [Symbol.asyncDispose]() {
      await parts.disposeAsync();
      await opened[Symbol.asyncDispose]();
    },
  };
}

/** Longer than any test: what waits for it hangs. */
const never = 100_000_000;

test('a question is over when every live server has answered, whatever came before and however long the answers are', async () => {
  await using lab = await openLab();
  const [a, b, c] = [await lab.join('a'), await lab.join('b'), await lab.join('c')];
  const long = 'x'.repeat(500);
  b.answer('count', async (body) => Array.from({ length: 30 }, (_, index) => ({ body, index, long })));
  c.answer('count', async () => []);
  const answers = (await a.ask('count', { of: 'sessions' }, never)) as {
    index: number;
    body: { of: string };
  }[];
  assert.deepEqual(
    answers.map(({ index }) => index),
    Array.from({ length: 30 }, (_, index) => index),
  );
  assert.equal(answers[0]?.body.of, 'sessions');
});

test('no server is asked where no other is live', async () => {
  await using lab = await openLab();
  const a = await lab.join('a');
  assert.deepEqual(await a.ask('count', {}, never), []);
});

test('a server that does not answer is waited for until the time is up, and the answers of the others count', async () => {
  await using lab = await openLab();
  const [a, b] = [await lab.join('a'), await lab.join('b')];
  b.answer('count', async () => [{ sessions: 1 }]);
  await lab.join('silent');
  // A busy machine may take longer than that for the one that answers.
  const answers = await eventually(
    () => a.ask('count', {}, 200),
    (some) => some.length > 0,
  );
  assert.deepEqual(answers, [{ sessions: 1 }]);
});

test('a server that has not been seen for long is not waited for', async () => {
  await using lab = await openLab();
  const a = await lab.join('a');
  await lab.join('gone');
  await lab.store.write(({ db }) =>
    updateRows(db, 'servers', { id: 'server_gone' }, { seen_at: '2020-01-01T00:00:00.000Z' }),
  );
  assert.deepEqual(await a.ask('count', {}, never), []);
});

test('an answer that fails is none, and stopping ends what is asked', async () => {
  await using lab = await openLab();
  const [a, b] = [await lab.join('a'), await lab.join('b')];
  b.answer('count', async () => {
    throw new Error('the gateway is away');
  });
  assert.deepEqual(await a.ask('count', {}, 200), []);
  const asked = a.ask('count', {}, never);
  a.stop();
  assert.deepEqual(await asked, []);
});

test('a recheck is over when the gateways of all live servers have had theirs', async () => {
  await using lab = await openLab();
  const done: string[] = [];
  const release = Promise.withResolvers<void>();
  const gateway = (name: string, until?: Promise<void>) => ({
    async recheck(filter?: SessionFilter) {
      await until;
      done.push(`${name} ${filter?.clusterId}`);
    },
  });
  const a = await lab.joinWith('a', gateway('a'));
  await lab.joinWith('b', gateway('b'));
  await lab.joinWith('c', gateway('c', release.promise));
  const recheck = a.recheck({ clusterId: 'alpha' }).then(() => [...done]);
  // Those of b and c are under way while this one waits.
  setTimeout(() => release.resolve(), 50);
  assert.deepEqual((await recheck).sort(), ['a alpha', 'b alpha', 'c alpha']);
});

test('a server that does not come to its recheck holds up no one for long', async () => {
  await using lab = await openLab();
  const a = await lab.joinWith('a', { recheck: async () => {} }, 200);
  await lab.joinWith('stuck', { recheck: () => new Promise(() => {}) });
  await a.recheck({});
});

test('sessions that a login node’s restart ends are closed on every server', async () => {
  await using lab = await openLab();
  const closed = Promise.withResolvers<unknown[]>();
  const a = await lab.joinWith('a', { close: () => 0 });
  await lab.joinWith('b', {
    close(...what) {
      closed.resolve(what);
      return 1;
    },
  });
  a.close({ loginNode: '127.0.0.1:22' }, 'login_node_restarting', 'Log in again.');
  assert.deepEqual(await closed.promise, [
    { loginNode: '127.0.0.1:22' },
    'login_node_restarting',
    'Log in again.',
  ]);
});

/** Bodies that no version sends, and some that one might. */
function* oddBodies(): Generator<unknown> {
  const odd = [null, true, 0, -1, 1e300, '', 'x', [], [null], {}, { length: 3 }];
  yield* odd;
  const fields = ['id', 'parts', 'isLast', 'filter', 'reason', 'text', 'key', 'nextAt', 'failures', 'host'];
  for (const field of fields) for (const value of odd) yield { [field]: value };
  for (const filter of [...odd, { keyID: 'x' }, { userId: 7 }, { userId: 'u', roomId: 'r' }])
    yield { id: 'x', filter, reason: filter, text: filter };
}

test('what servers of another version send, of whatever form, ends nothing and closes no session that it may not mean', async () => {
  await using lab = await openLab();
  const closed: unknown[] = [];
  const rechecked: unknown[] = [];
  await lab.joinWith('a', {
    close: (...what: unknown[]) => closed.push(what),
    async recheck(filter?: SessionFilter) {
      rechecked.push(filter);
    },
  });
  const b = await lab.joinWith('b', { close: (...what: unknown[]) => closed.push(what), async recheck() {} });
  const { received, ...messages } = createMessages(undefined, (topic) => void lab.faults.push(topic));
  const passes = hearPasses({ messages });
  for (const body of oddBodies()) {
    for (const topic of ['answer', 'ask recheck', 'ask close', 'ask count', 'ask nothing', 'rooms'])
      lab.sayAsAnother(topic, body);
    received('sync.passed', body, 'server_d');
    // So many at once are not answered.
    await new Promise((done) => setImmediate(done));
  }
  for (const [nextAt, expected] of [
    [1e300, undefined],
    ['soon', undefined],
    [5, 5],
  ]) {
    received('sync.passed', { key: 'x/slurm', nextAt, failures: 'many' }, 'server_d');
    assert.deepEqual(passes.passesOf('x', 'slurm'), {
      nextAt: expected,
      failures: 0,
      failingSince: undefined,
    });
  }
  // Behind all that came before.
  await b.recheck({ clusterId: 'alpha' });
  assert.ok(rechecked.some((filter) => isDeepStrictEqual(filter, { clusterId: 'alpha' })));
  assert.deepEqual(closed, []);
  const isReadable = (filter: unknown) =>
    Object.entries(Object(filter)).every(([, value]) => typeof value === 'string');
  assert.ok(rechecked.every(isReadable), JSON.stringify(rechecked));
  assert.ok(lab.faults.includes('answer') && lab.faults.includes('sync.passed'), lab.faults.join());
});

test('what another version reports of how much passed through sessions is taken as far as it can be read', async () => {
  await using lab = await openLab();
  const a = await lab.joinWith('a', {});
  const others = await lab.join('b');
  others.answer('count', async () => [
    { id: 'one', channels: 'many', bytesUp: 1e300, bytesDown: 7, username: 'mallory' },
    { channels: 1 },
    [],
  ]);
  const opened = { id: 'one', username: 'ada', channels: 0, bytesUp: 0, bytesDown: 0 };
  await lab.store.write(({ db }) =>
    insertRow(db, 'open_sessions', {
      id: 'one',
      entry: JSON.stringify({ session: opened }),
      server_id: 'server_b',
    }),
  );
  await eventually(
    () => a.sessions(),
    ([session]) => isDeepStrictEqual(session, { ...opened, bytesDown: 7 }),
  );
});
