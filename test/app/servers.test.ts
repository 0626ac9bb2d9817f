/** A server among others: when it gives up what it does, and when it may not be there at all. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { DomainError } from '../../src/domain/error.ts';
import { clockFault, problemsOfServers, serverLifeMs } from '../../src/domain/server.ts';
import { createLogger } from '../../src/lib/log.ts';
import { joinPeers } from '../../src/service/compose/peers/index.ts';
import { createCluster, findClusterByName, startRelease } from '../../src/store/clusters/clusters.ts';
import type { ChangeListener } from '../../src/store/engine/changes.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { findOrganizationBySlug } from '../../src/store/organizations/organizations.ts';
import { type Lease, LeaseLostError } from '../../src/store/servers/leases.ts';
import { listServers } from '../../src/store/servers/servers.ts';
import { refuseSimulated } from '../../src/store/servers/simulated-clusters.ts';
import { eventually, physics, startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { asServer, letPass } from '../support/servers.ts';
import { openTestStore } from '../support/store.ts';

const silent = createLogger('silent');
const quick = { heartbeatMs: 50, giveUpMs: 60_000, pollMs: 20, lifeMs: serverLifeMs };
const owner = { email: 'ada@x.example', role: 'owner' as const, username: 'ada' };
const lab: Lab = { organizations: [{ slug: 'x', name: 'X', members: [owner] }] };

/** Servers of one database, each in a directory of its own; stopped at the end. */
async function joining(filled: Lab = lab) {
  const stack = new AsyncDisposableStack();
  const { store } = stack.use(await openTestStore(filled));
  return {
    store,
    async join(
      name: string,
      { own = asServer(store), log = silent, times = quick as Parameters<typeof joinPeers>[3] } = {},
    ) {
      const directory = stack.use(temporaryDirectory());
      const servers = await joinPeers({ dataDir: directory.path, server: { name } }, own, log, times);
      let stopped: Promise<void> | undefined;
      const stop = () => {
        stopped ??= servers.stop();
        return stopped;
      };
      stack.defer(stop);
      return { own, servers, leases: servers.leases, stop };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** A duty that notes what becomes of it. */
function noting() {
  const seen: string[] = [];
  return {
    seen,
    tokens: [] as (number | undefined)[],
    begin({ token }: { token: number | undefined }) {
      this.tokens.push(token);
      seen.push('begin');
    },
    async end(why: string) {
      seen.push(why);
    },
  };
}

test('a server that cannot say that it is there gives up what it does, and begins again when it can', async () => {
  await using all = await joining();
  const events: string[] = [];
  const log = createLogger('info', (line) => void events.push(JSON.parse(line).event));
  let isAway = false;
  const base = asServer(all.store);
  const away = () => Promise.reject(new DomainError('service_unavailable', 'The database is away.'));
  const own: Store = {
    ...base,
    write: (body, options) => (isAway ? away() : base.write(body, options)),
    writeOwn: (body) => (isAway ? away() : base.writeOwn(body)),
  };
  const { leases } = await all.join('one', { own, log, times: { ...quick, giveUpMs: 1_000 } });
  const duty = noting();
  const leave = leases.want('a', duty);
  // A machine that stands still for a second makes it give up once more.
  const last = (wanted: string) =>
    eventually(
      async () => duty.seen.at(-1),
      (seen) => seen === wanted,
    );
  await last('begin');
  isAway = true;
  await last('lost');
  assert.ok(events.includes('lease.given_up') && events.includes('servers.failed'));
  const before = duty.tokens.length;
  isAway = false;
  await eventually(
    async () => duty.tokens.length,
    (count) => count > before,
  );
  const tokens = duty.tokens.map((token = 0) => token);
  assert.ok(
    tokens.every((token, index) => index === 0 || token > (tokens[index - 1] ?? 0)),
    'what it did before it gave up is fenced as well',
  );
  await leave();
  assert.notEqual(duty.seen.at(-1), 'begin');
});

test('where the database lost commits, what is done is begun again with higher tokens', async () => {
  await using all = await joining();
  const base = asServer(all.store);
  const listeners = new Set<ChangeListener>();
  const own: Store = {
    ...base,
    onChange(_kinds, listener) {
      listeners.add(listener as ChangeListener);
      return () => void listeners.delete(listener as ChangeListener);
    },
  };
  const { leases, stop } = await all.join('one', { own });
  const duty = noting();
  leases.want('a', duty);
  const tokens = (wanted: number) =>
    eventually(
      async () => duty.tokens,
      ({ length }) => length === wanted,
    );
  await tokens(1);
  for (const tell of listeners) tell([{ kind: 'everything', wentBack: true }], { from: 'elsewhere' });
  const [first = 0, second = 0] = await tokens(2);
  assert.ok(second > first);
  assert.deepEqual(duty.seen, ['begin', 'lost', 'begin']);
  await stop();
  assert.equal(listeners.size, 0);
});

test('a server that was taken for gone is there again with what it takes next, and the other keeps what that took', async () => {
  await using all = await joining();
  const one = await all.join('one', { times: { ...quick, heartbeatMs: 3_600_000 } });
  const [mine, theirs] = [noting(), noting()];
  one.leases.want('a', mine);
  await eventually(
    async () => mine.seen.join(),
    (seen) => seen === 'begin',
  );
  const two = await all.join('two');
  two.leases.want('a', theirs);
  await letPass(all.store, one.own.server.id, serverLifeMs);
  await eventually(
    async () => theirs.seen.join(),
    (seen) => seen === 'begin',
  );
  // What asks for another makes it say that it is there.
  one.leases.want('b', noting());
  await eventually(
    async () => (await listServers(two.own)).map(({ name, isLive, leases }) => `${name} ${isLive} ${leases}`),
    (servers) => servers.join() === 'one true 1,two true 1',
  );
});

test('a server whose writes wait for long keeps what it does', async () => {
  await using all = await joining();
  const events: string[] = [];
  const log = createLogger('debug', (line) => void events.push(JSON.parse(line).event));
  const base = asServer(all.store);
  let waiting: Promise<void> | undefined;
  const own: Store = {
    ...base,
    async write(body, options) {
      await waiting;
      return base.write(body, options);
    },
  };
  const { leases } = await all.join('one', { own, log });
  const [held, wanted] = [noting(), noting()];
  leases.want('a', held);
  await eventually(
    async () => held.seen.join(),
    (seen) => seen === 'begin',
  );
  const { promise, resolve } = Promise.withResolvers<void>();
  waiting = promise;
  // What is asked for meanwhile waits, and it says that it is there all the same.
  leases.want('b', wanted);
  const counted = () => events.filter((event) => event === 'servers.counted').length;
  const before = counted();
  await eventually(
    async () => counted(),
    (count) => count > before + 3,
  );
  assert.deepEqual([held.seen, wanted.seen], [['begin'], []]);
  resolve();
  await eventually(
    async () => wanted.seen.join(),
    (seen) => seen === 'begin',
  );
  assert.deepEqual(held.seen, ['begin']);
});

test('of a server that was not seen it is said that it is gone, but not by one that could not look meanwhile', async () => {
  await using all = await joining();
  const events: string[] = [];
  const log = createLogger('debug', (line) => void events.push(JSON.parse(line).event));
  const seen = (event: string, before = 0) =>
    eventually(
      async () => events.lastIndexOf(event),
      (at) => at >= before,
    );
  // It says only once that it is there.
  const one = await all.join('one', { times: { ...quick, heartbeatMs: 3_600_000 } });
  const base = asServer(all.store);
  let standing: Promise<void> | undefined;
  const own: Store = {
    ...base,
    async write(body, options) {
      await standing;
      return base.write(body, options);
    },
    async writeOwn(body) {
      await standing;
      return base.writeOwn(body);
    },
  };
  const times = { ...quick, giveUpMs: 200, lifeMs: 1_000 };
  await all.join('two', { own, log, times });
  await seen('servers.seen');
  await new Promise((done) => setTimeout(done, times.lifeMs));
  const { promise, resolve } = Promise.withResolvers<void>();
  standing = promise;
  await new Promise((done) => setTimeout(done, 2 * times.giveUpMs));
  await letPass(all.store, one.own.server.id, serverLifeMs);
  events.length = 0;
  resolve();
  await seen('servers.counted');
  // As the other would, a moment later.
  await letPass(all.store, one.own.server.id, -serverLifeMs);
  await seen('servers.counted', events.length);
  assert.equal(events.includes('servers.gone'), false);

  await all.join('three', { log, times: { ...quick, lifeMs: 0 } });
  await seen('servers.seen', events.length);
  await letPass(all.store, one.own.server.id, serverLifeMs);
  await seen('servers.gone');
});

test('what is changed on a cluster in the name of a lease is confirmed before: by the clock, and by the database', async () => {
  await using all = await joining();
  // Nothing of it comes by itself: the timers of a server that stands still fire late.
  const halted = { heartbeatMs: 3_600_000, giveUpMs: 3_600_000, pollMs: 3_600_000 };
  const one = await all.join('one', { times: halted });
  const { promise: taken, resolve: take } = Promise.withResolvers<Lease>();
  const mine = noting();
  one.leases.want('a', { begin: take, end: (why) => mine.end(why) });
  const lease = await taken;
  await lease.confirm();
  lease.requireTime();
  const two = await all.join('two');
  const theirs = noting();
  two.leases.want('a', theirs);
  await letPass(all.store, one.own.server.id, serverLifeMs);
  await eventually(
    async () => theirs.seen.join(),
    (seen) => seen === 'begin',
  );
  assert.deepEqual(mine.seen, []);
  await assert.rejects(lease.confirm(), LeaseLostError);
  assert.deepEqual(mine.seen, ['lost']);
  assert.throws(() => lease.requireTime(), LeaseLostError);

  const slow = await all.join('slow', { times: { ...halted, giveUpMs: 0 } });
  const { promise: late, resolve: begin } = Promise.withResolvers<Lease>();
  slow.leases.want('b', { begin, async end() {} });
  const its = await late;
  await assert.rejects(its.confirm(), LeaseLostError);
  assert.throws(() => its.requireTime(), LeaseLostError);
});

test('a clock that goes wrong while a server runs is said while it is so, in the log and by every server', async () => {
  await using all = await joining();
  const said: string[] = [];
  const log = createLogger('info', (line) => void said.push(JSON.parse(line).event));
  let aheadMs = 0;
  const now = () => Date.now() + aheadMs;
  const one = await all.join('one', { log, times: { ...quick, now } });
  const clock = async () => (await listServers(one.own)).map(({ clockDiffersMs }) => clockDiffersMs)[0];
  const problems = async () => problemsOfServers(await listServers(one.own));
  await eventually(clock, (differs) => differs !== undefined);
  assert.deepEqual(await problems(), []);
  aheadMs = 30_000;
  const ahead = /^Its clock is \d+\.\d seconds ahead of that of the database\.$/;
  const found = await eventually(problems, ([one]) => ahead.test(one?.message ?? ''));
  assert.deepEqual(
    found.map(({ about }) => about),
    ['one'],
  );
  aheadMs = -30_000;
  await eventually(clock, (differs = 0) => differs > 0);
  aheadMs = 0;
  await eventually(
    async () => [...said],
    (events) => events.includes('servers.clock.right'),
  );
  await eventually(problems, (list) => list.length === 0);
  const events = said.filter((event) => event.startsWith('servers.clock'));
  assert.deepEqual(events, ['servers.clock.wrong', 'servers.clock.right']);
});

test('a server whose clock is further off than tokens bear is not ready, unless most servers have its time', async () => {
  await using all = await joining();
  let [aheadMs, otherMs] = [600_000, 0];
  const join = (name: string, now: () => number) => all.join(name, { times: { ...quick, now } });
  const one = await join('one', () => Date.now() + aheadMs);
  const fault = async () => one.servers.clockFault;
  // Known before anything is served.
  assert.match(
    (await fault()) ?? '',
    /^The clock of this server is (599|600)\.\d seconds ahead of that of the database\. See on all hosts/,
  );
  const other = await join('other', () => Date.now() + otherMs);
  assert.equal(other.servers.clockFault, undefined);
  otherMs = 601_000;
  await eventually(fault, (text) => text === undefined);
  otherMs = 0;
  await eventually(fault, (text) => text !== undefined);
  aheadMs = -29_000;
  await eventually(fault, (text) => text === undefined);
  aheadMs = -31_000;
  await eventually(fault, (text) => /31\.\d seconds behind/.test(text ?? ''));
});

test('whose clock is wrong is decided by a majority of the servers and the database, which breaks a tie', () => {
  const off = 600_000;
  const serve = (...clocks: number[]) =>
    clocks.map((one, index) => clockFault(one, clocks.toSpliced(index, 1)) === undefined);
  for (const [clocks, expected] of [
    [[0], [true]],
    [[off], [false]],
    [
      [off, off + 20_000],
      [true, true],
    ],
    [
      [off, 0],
      [false, true],
    ],
    [
      [off, off, 0],
      [false, false, true],
    ],
    [
      [off, off, off, 0],
      [true, true, true, false],
    ],
    [
      [off, -off, 0],
      [false, false, true],
    ],
    [
      [off, -off],
      [false, false],
    ],
  ] as const)
    assert.deepEqual(serve(...clocks), expected, clocks.join());
  assert.match(clockFault(0, [off, off, off]) ?? '', /^Most other servers have another time than this one/);
  assert.equal(clockFault(off, [off, undefined]), undefined, 'one of the version before says nothing');
});

test('servers whose configuration differs where it has to be the same say so', async () => {
  await using all = await joining();
  const said: string[] = [];
  const log = createLogger('warn', (line) => void said.push(JSON.parse(line).message));
  const settings = (issuer: string) => ({ 'identity.issuer': issuer, 'console.url': '' });
  await all.join('one', { times: { ...quick, settings: settings('https://a.example') } });
  const two = await all.join('two', { log, times: { ...quick, settings: settings('https://b.example') } });
  // Of the version before, which says nothing of it.
  await all.join('old');
  assert.deepEqual(
    problemsOfServers(await listServers(two.own)).map(({ about, message }) => [about, message]),
    [
      [
        'identity.issuer',
        'It differs between the servers: https://a.example on one; https://b.example on two.',
      ],
    ],
  );
  await eventually(
    async () => said,
    (messages) =>
      messages.includes(
        "The configuration of one differs from this server's in what has to be the same on all: identity.issuer (here https://b.example, there https://a.example).",
      ),
  );
});

test('a server that is gone, and two versions side by side, are for an operator to mend', async () => {
  const server = { startedAt: '', leases: 0, clockDiffersMs: undefined, settings: {} };
  const at = '2030-01-01T00:00:00.000Z';
  const of = (name: string, version: string, isLive: boolean) => ({
    ...server,
    id: name,
    name,
    version,
    isLive,
    seenAt: at,
  });
  const problems = problemsOfServers([
    of('one', '0.1.0', true),
    of('two', '0.2.0', true),
    of('three', '0.2.0', false),
    // Its place was taken by one of the same name.
    of('two', '0.1.0', false),
  ]);
  assert.deepEqual(
    problems.map(({ about, urgency, message }) => [about, urgency, message]),
    [
      ['three', 'now', `It ended without a word, or cannot reach the database: it was last seen at ${at}.`],
      ['versions', 'soon', 'The servers are of different versions: 0.1.0 on one; 0.2.0 on two.'],
    ],
  );
});

test('a simulated cluster is refused where there is another server, whichever comes second', async () => {
  const simulated = { name: 'sim', organization: 'x', simulated: { computeNodes: 1, gpusPerNode: 1 } };
  await using all = await joining({ ...lab, clusters: [simulated] });
  const one = await all.join('one');
  await assert.rejects(
    all.join('two'),
    /^DomainError: Simulated clusters \(sim\) live in the data directory of one server, and one serves from this database as well. Release them first \(`andromeda admin cluster release`\), or stop the other servers.$/,
  );
  const found = await findClusterByName(all.store.read, 'sim');
  await all.store.write((tx) => startRelease(tx, { clusterId: found?.id ?? '', commandId: null }));
  await all.store.write(({ db }) => db.updateTable('clusters').set({ state: 'released' }).execute());
  await all.join('two');
  const organization = await findOrganizationBySlug(all.store.read, 'x');
  const added = one.own.write(async (tx) => {
    await createCluster(tx, { ...simulated, name: 'other', organizationId: organization?.id ?? '' });
    await refuseSimulated(tx);
  });
  await assert.rejects(added, /Simulated clusters \(other\) live .* and two serves/);
});

test('a server that ended without a word is waited for, and does not keep a simulated cluster from being served', async () => {
  await using all = await joining(physics);
  const one = await all.join('one', { times: { ...quick, heartbeatMs: 3_600_000 } });
  await letPass(all.store, one.own.server.id, serverLifeMs - 500);
  await all.join('two');
});

test('GET /operator/servers: on SQLite there is one, which answers and shares nothing out', async () => {
  await using service = await startTestApp({ config: { server: { name: 'login-a' } } });
  const { status, body } = await service.business('/operator/servers', { as: 'root' });
  assert.equal(status, 200);
  const [{ id, started_at: started, seen_at: seen, version, ...server }, ...others] = body.servers;
  assert.deepEqual([server, others], [{ name: 'login-a', state: 'live', answers: true, leases: 0 }, []]);
  assert.match(id, /^server_/);
  assert.match(version, /^\d+\.\d+\.\d+$/);
  assert.ok(seen >= started);
  assert.equal((await service.business('/operator/servers', { as: 'ada' })).status, 403);
  const { body: list } = await service.business('/operator/problems', { as: 'root' });
  assert.deepEqual(
    list.problems.filter(({ area }: { area: string }) => area === 'server'),
    [],
  );
});

test('where there can be no other server, none is asked, and nothing is made that only others need', async () => {
  await using opened = await openTestStore(lab);
  if (!opened.store.server.isAlone) return;
  using directory = temporaryDirectory();
  const peers = await joinPeers({ dataDir: directory.path, server: { name: 'alone' } }, opened.store, silent);
  assert.deepEqual(await peers.ask('count', {}, 100_000_000), []);
  assert.equal(
    peers.forOthers(() => 'made'),
    undefined,
  );
  assert.ok(peers.leases.areAllHeld);
});
