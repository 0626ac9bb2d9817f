/** A server among others: when it gives up what it does, and when it may not be there at all. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { DomainError } from '../../src/domain/error.ts';
import { clockFault, problemsOfServers, serverLifeMs } from '../../src/domain/server.ts';
import { createLogger } from '../../src/lib/log.ts';
import { joinPeers } from '../../src/service/compose/peers/index.ts';
import type { Peers } from '../../src/service/compose/peers/peers.ts';
import { createCluster, findClusterByName, startRelease } from '../../src/store/clusters/clusters.ts';
import type { ChangeListener } from '../../src/store/engine/changes.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { findOrganizationBySlug } from '../../src/store/organizations/organizations.ts';
import { type Lead, NotLeaderError } from '../../src/store/servers/leader.ts';
import { listServers, refuseSimulated } from '../../src/store/servers/servers.ts';
import { becomes, eventually, physics, startTestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { asServer, letPass, newWire } from '../support/servers.ts';
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
      return { own, servers, stop };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Has a server lead, and notes what becomes of that. `slow`: what its end waits for. */
function leading(servers: Peers, slow?: Promise<void>) {
  const seen: string[] = [];
  const leads: Lead[] = [];
  const stop = servers.whileLeading((lead) => {
    leads.push(lead);
    seen.push('began');
    return async (why) => {
      seen.push(why);
      await slow;
    };
  });
  return {
    seen,
    leads,
    tokens: () => leads.map(({ token = 0 }) => token),
    until: (...wanted: string[]) =>
      eventually(
        async () => seen.join(),
        (text) => text === wanted.join(),
      ),
    stop,
  };
}

test('a server that cannot say that it is there gives up the lead, and leads again when it can', async () => {
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
  const { servers } = await all.join('one', { own, log, times: { ...quick, giveUpMs: 1_000 } });
  const led = leading(servers);
  // A machine that stands still for a second makes it give up once more.
  const last = (wanted: string) =>
    eventually(
      async () => led.seen.at(-1),
      (seen) => seen === wanted,
    );
  await last('began');
  isAway = true;
  await last('lost');
  assert.equal(servers.lead, undefined);
  assert.ok(events.includes('leader.given_up') && events.includes('servers.failed'));
  const before = led.leads.length;
  isAway = false;
  await becomes(() => led.leads.length > before, true);
  const tokens = led.tokens();
  assert.ok(
    tokens.every((token, index) => index === 0 || token > (tokens[index - 1] ?? 0)),
    'what it did before it gave up is fenced as well',
  );
  await led.stop();
  assert.notEqual(led.seen.at(-1), 'began');
});

test('where the database lost commits, the leader begins again with a higher token', async () => {
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
  const { servers, stop } = await all.join('one', { own });
  const led = leading(servers);
  await led.until('began');
  for (const tell of listeners) tell([{ kind: 'everything', wentBack: true }], { from: 'elsewhere' });
  await led.until('began', 'lost', 'began');
  const [first = 0, second = 0] = led.tokens();
  assert.ok(second > first);
  await stop();
  assert.equal(listeners.size, 0);
});

test('a leader that stops hands over at once, also where something of it does not end', async () => {
  await using all = await joining();
  const wire = newWire();
  const one = await all.join('one', { own: asServer(all.store, wire) });
  const { promise: never, resolve } = Promise.withResolvers<void>();
  const first = leading(one.servers, never);
  await first.until('began');
  const two = await all.join('two', { own: asServer(all.store, wire) });
  const second = leading(two.servers);
  const stopped = first.stop();
  await second.until('began');
  assert.deepEqual(first.seen, ['began', 'left']);
  const late = first.leads[0]?.store.write(async () => assert.fail('what goes on writes nothing'));
  await assert.rejects(late ?? Promise.resolve(), NotLeaderError);
  resolve();
  await stopped;
});

test('a server that cannot begin what the leader does leaves the lead to another', async () => {
  await using all = await joining();
  const one = await all.join('one');
  const failed = Promise.withResolvers<void>();
  one.servers.whileLeading(() => {
    failed.resolve();
    throw new Error('the disk is gone');
  });
  await failed.promise;
  const two = await all.join('two');
  const second = leading(two.servers);
  await second.until('began');
  assert.equal(one.servers.lead, undefined);
});

test('a leader that was taken for gone is there again, and the other leads', async () => {
  await using all = await joining();
  const one = await all.join('one', { times: { ...quick, heartbeatMs: 3_600_000 } });
  const first = leading(one.servers);
  await first.until('began');
  const two = await all.join('two');
  const second = leading(two.servers);
  await letPass(all.store, one.own.server.id, serverLifeMs);
  await second.until('began');
  // What it would write makes it find out; what it asks for then, that it is there.
  const late = first.leads[0]?.store.write(async () => {});
  await assert.rejects(late ?? Promise.resolve(), NotLeaderError);
  assert.deepEqual(first.seen, ['began', 'lost']);
  const servers = async () =>
    (await listServers(two.own)).map(({ name, leads }) => `${name} ${leads}`).join();
  assert.equal(await servers(), 'one false,two true');
});

test('a leader whose writes wait for long goes on to lead', async () => {
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
  const { servers } = await all.join('one', { own, log });
  const led = leading(servers);
  await led.until('began');
  const { promise, resolve } = Promise.withResolvers<void>();
  waiting = promise;
  // It says that it is there all the same.
  const counted = () => events.filter((event) => event === 'servers.counted').length;
  const before = counted();
  await becomes(() => counted() > before + 3, true);
  resolve();
  assert.deepEqual(led.seen, ['began']);
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

test('what the leader changes on a cluster is confirmed before: by the clock, and by the database', async () => {
  await using all = await joining();
  // Nothing of it comes by itself: the timers of a server that stands still fire late.
  const halted = { heartbeatMs: 3_600_000, giveUpMs: 3_600_000, pollMs: 3_600_000 };
  const one = await all.join('one', { times: halted });
  const first = leading(one.servers);
  await first.until('began');
  const [lead] = first.leads;
  assert.ok(lead);
  await lead.confirm();
  lead.requireTime();
  const two = await all.join('two');
  const second = leading(two.servers);
  await letPass(all.store, one.own.server.id, serverLifeMs);
  await second.until('began');
  assert.deepEqual(first.seen, ['began']);
  await assert.rejects(lead.confirm(), NotLeaderError);
  assert.deepEqual(first.seen, ['began', 'lost']);
  assert.throws(() => lead.requireTime(), NotLeaderError);
});

test('a leader that could not say lately that it is there changes nothing on a cluster', async () => {
  await using all = await joining();
  const slow = await all.join('slow', {
    times: { heartbeatMs: 3_600_000, giveUpMs: 1_000, pollMs: 3_600_000 },
  });
  const led = leading(slow.servers);
  await led.until('began');
  const [lead] = led.leads;
  assert.ok(lead);
  await becomes(
    async () => (await lead.confirm().catch((error: unknown) => error)) instanceof NotLeaderError,
    true,
  );
  assert.throws(() => lead.requireTime(), NotLeaderError);
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
  await becomes(() => [...said].includes('servers.clock.right'), true);
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
  for (const { clocks, right } of [
    { clocks: [0], right: [true] },
    { clocks: [off], right: [false] },
    { clocks: [off, off + 20_000], right: [true, true] },
    { clocks: [off, 0], right: [false, true] },
    { clocks: [off, off, 0], right: [false, false, true] },
    { clocks: [off, off, off, 0], right: [true, true, true, false] },
    { clocks: [off, -off, 0], right: [false, false, true] },
    { clocks: [off, -off], right: [false, false] },
  ])
    assert.deepEqual(serve(...clocks), right, clocks.join());
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
  await becomes(
    () =>
      said.includes(
        "The configuration of one differs from this server's in what has to be the same on all: identity.issuer (here https://b.example, there https://a.example).",
      ),
    true,
  );
});

test('a server that is gone, and two versions side by side, are for an operator to mend', async () => {
  const server = { startedAt: '', leads: false, clockDiffersMs: undefined, settings: {} };
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

test('GET /operator/servers: on SQLite there is one, which answers and leads', async () => {
  await using service = await startTestApp({ config: { server: { name: 'login-a' } } });
  const { status, body } = await service.business('/operator/servers', { as: 'root' });
  assert.equal(status, 200);
  const [{ id, started_at: started, seen_at: seen, version, ...server }, ...others] = body.servers;
  assert.deepEqual([server, others], [{ name: 'login-a', state: 'live', answers: true, leads: true }, []]);
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
  const led = leading(peers);
  assert.deepEqual(led.tokens(), [0], 'it leads at once, with no token');
  assert.equal(peers.lead?.store, opened.store);
  await led.stop();
  assert.deepEqual(led.seen, ['began', 'left']);
});
