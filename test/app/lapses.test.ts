/** What the log and problems say of access, keys and certificates that run out; and how what has expired is deleted. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { keysAt, withNext } from '../../src/domain/key-rotation.ts';
import { createPatientClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { generateSshKey, parseSshKey, type SshKeyFile } from '../../src/lib/ssh/public-key.ts';
import { watchCertificates } from '../../src/service/compose/certificates.ts';
import { startSweeps } from '../../src/service/compose/leader.ts';
import { watchLoginNodes } from '../../src/service/compose/login-node-keys.ts';
import { warnOfLapses } from '../../src/service/compose/permission-ends.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { recordSlurmReport } from '../../src/store/clusters/observations.ts';
import { findRow, insertRow } from '../../src/store/engine/rows.ts';
import { recordSignIn } from '../../src/store/people/people.ts';
import { openLab, whyNot } from '../gateway/lab.ts';
import { alpha, becomes, eventually, physics } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { openTestStore, userId } from '../support/store.ts';

const day = 86_400_000;

test('the log says whose access has lapsed and whose will within a week', async () => {
  const clock = { now: Date.now() };
  const access = { maxHoursWithoutSignIn: 30 * 24 };
  await using store = await openTestStore(physics, () => clock.now, access);
  const lines: string[] = [];
  const log = createLogger('warn', (line) => lines.push(line));
  clock.now += 25 * day;
  await recordSignIn(store, await userId(store, 'ada@physics.example'), clock.now);
  const said = async () => {
    lines.length = 0;
    const stop = warnOfLapses(store, log);
    await becomes(() => lines.length > 0, true);
    stop();
    return JSON.parse(lines[0] ?? '');
  };
  const soon = await said();
  assert.equal(soon.event, 'access.lapsing');
  assert.equal(soon.people, 4);
  assert.match(soon.message, /^Soon the access of 4 people will lapse, without a sign-in for 30 days\./);
  clock.now += 6 * day;
  const { event, people, userIds, message } = await said();
  assert.deepEqual([event, people, userIds.length], ['access.lapsed', 4, 4]);
  assert.match(
    message,
    /^Access of 4 people lapsed, without a sign-in for 30 days\. It comes back when they/,
  );
});

test('for what ends by its age, a jump of the clock counts after a day', () => {
  const host = { now: 1_000_000_000, uptime: 0 };
  const patient = createPatientClock({ now: () => host.now, uptime: () => host.uptime });
  const pass = (ms: number) => {
    host.now += ms;
    host.uptime += ms;
  };
  pass(day);
  assert.equal(patient(), host.now);
  host.now += 400 * day;
  assert.equal(patient(), host.now - 400 * day);
  pass(day / 2);
  assert.equal(patient(), host.now - 400 * day);
  host.now -= 400 * day;
  assert.equal(patient(), host.now, 'set right again');
  host.now -= 10 * day;
  assert.equal(patient(), host.now, 'back');
  host.now += 10 * day;
  assert.equal(patient(), host.now - 10 * day);
  pass(day);
  assert.equal(patient(), host.now, 'believed');
});

test('the first sign-in of an account is noted however new it is, and then one a minute', async () => {
  const clock = { now: Date.now() };
  await using store = await openTestStore(physics, () => clock.now);
  const ada = await userId(store, 'ada@physics.example');
  const noted = async () => (await findRow(store.read, 'users', { id: ada }))?.last_sign_in_at;
  assert.equal(await noted(), null);
  const first = clock.now + 1_000;
  await recordSignIn(store, ada, first);
  assert.equal(await noted(), new Date(first).toISOString());
  await recordSignIn(store, ada, first + 59_000);
  assert.equal(await noted(), new Date(first).toISOString());
  await recordSignIn(store, ada, first + 60_000);
  assert.equal(await noted(), new Date(first + 60_000).toISOString());
});

const tables = ['issuer_records', 'limit_counts', 'console_sessions', 'open_sessions'] as const;

test('what has expired is deleted, however much it is, and nothing else', async () => {
  await using opened = await openTestStore(physics);
  const { store } = opened;
  const ada = await userId(store, 'ada@physics.example');
  await store.write(async ({ db, now }) => {
    const past = new Date(now - 30 * 86_400_000).toISOString();
    const present = new Date(now).toISOString();
    for (let index = 0; index < 250; index += 1) {
      const [id, isOld] = [`id-${index}`, index > 0];
      const expires_at = isOld ? 1 : now * 2;
      const at = isOld ? past : present;
      const console = { user_id: ada, sealed: '', address: '', program: '', created_at: at, seen_at: at };
      const open = { entry: '{}', server_id: 'server_1', presumed_seq: 1, presumed_at: at };
      await insertRow(db, 'issuer_records', { model: 'Grant', id, payload: '{}', expires_at });
      await insertRow(db, 'limit_counts', { name: 'n', key: id, failures: 1, at: 1, expires_at });
      await insertRow(db, 'console_sessions', { id, ...console });
      await insertRow(db, 'open_sessions', { id, ...open });
    }
  });
  const stop = startSweeps(store, { log: createLogger('silent'), now: Date.now });
  for (const table of tables)
    await becomes(async () => (await store.read.selectFrom(table).selectAll().execute()).length, 1);
  await stop();
  assert.equal((await store.read.selectFrom('console_sessions').select('id').executeTakeFirst())?.id, 'id-0');
});

const dayMs = 86_400_000;

/** A configuration whose Platform API has a certificate for so many days. */
function configure(directory: string, days: number) {
  const { cert, key } = createAuthority().issue('server', days * dayMs);
  writeFileSync(join(directory, 'chain.pem'), cert);
  writeFileSync(join(directory, 'key.pem'), key);
  const file = join(directory, 'andromeda.yaml');
  writeFileSync(file, stringify({ platform: { tls: { cert: 'chain.pem', key: 'key.pem' } } }));
  return readConfig(file);
}

test('a certificate’s end is said 30, 7 and 1 days before, at the end, and once each', async () => {
  using directory = temporaryDirectory();
  const config = configure(directory.path, 40);
  const lines: string[] = [];
  const log = createLogger('info', (line) => {
    const { level, event, setting, message } = JSON.parse(line);
    const text = message.replaceAll(directory.path, '').replace(/ on [\d-]+/, '');
    lines.push(`${level} ${event} ${setting} ${text}`);
  });
  let days = 0;
  let looks = 0;
  const now = () => {
    looks += 1;
    return Date.now() + days * dayMs;
  };
  const stop = watchCertificates(config, log, now, 1);
  const after = async (count: number) => {
    days = count;
    const before = looks;
    await becomes(() => looks > before + 20, true);
    return lines.splice(0);
  };
  assert.deepEqual(await after(9.5), []);
  const ending = (span: string) => [
    `warn certificate.ending platform.tls /chain.pem ends, in ${span}. Renew it, and reload the service.`,
  ];
  assert.deepEqual(await after(10.5), ending('29 days'));
  assert.deepEqual(await after(20), []);
  assert.deepEqual(await after(33.5), ending('6 days'));
  assert.deepEqual(await after(39.5), ending('less than a day'));
  assert.deepEqual(await after(41), [
    'error certificate.ended platform.tls /chain.pem ended. Renew it, and reload the service.',
  ]);
  assert.deepEqual(await after(50), []);
  stop();
});

test('one that has ended is said at the start, and does not keep the service from starting', () => {
  using directory = temporaryDirectory();
  const lines: string[] = [];
  const log = createLogger('info', (line) => lines.push(line));
  watchCertificates(configure(directory.path, -0.5), log, Date.now)();
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /"event":"certificate\.ended"/);
});

test('one that cannot be used does keep it from starting, and the file is named', () => {
  using directory = temporaryDirectory();
  const log = createLogger('silent');
  const { platform, ...config } = configure(directory.path, 9);
  const tls = platform.tls && { ...platform.tls, key: Buffer.from('no key') };
  assert.throws(() => watchCertificates({ ...config, platform: { ...platform, tls } }, log, Date.now), {
    code: 'invalid_request',
    message: `platform.tls: ${directory.path}/key.pem holds no private key in PEM that can be read without a passphrase.`,
  });
});

const parsed = (text: string): SshKeyFile => {
  const key = parseSshKey(text);
  assert.ok(key);
  return key;
};

test('login nodes are asked about the next key, with the time from when on they would refuse the gateway', {
  skip: whyNot,
}, async (t) => {
  const lab = await openLab();
  t.after(() => lab.close());
  await using store = await openTestStore(physics);
  const node = { ...lab.route.loginNode, name: 'login-1', up: true, username: lab.route.username };
  await recordSlurmReport(store, alpha, {
    ...{ manifestGeneration: 1, desiredGeneration: 1, listVersion: 1, loginNodes: [node], accounts: [] },
    ...{ runningJobs: [], machines: [], failure: null },
  } as unknown as Parameters<typeof recordSlurmReport>[2]);
  const known = parsed(readFileSync(join(lab.dir, 'client'), 'utf8'));
  const start = Date.now();
  const clock = { now: start };
  let set = withNext({ key: known }, parsed(generateSshKey().privateKey), 30, start);
  const keys = { of: () => keysAt(set, clock.now) } as unknown as Parameters<
    typeof watchLoginNodes
  >[0]['keys'];
  const watch = watchLoginNodes(
    { store, keys, log: createLogger('silent') },
    { firstMs: 1, everyMs: 20, againMs: 1 },
  );
  t.after(() => watch.stop());
  const problems = (wanted: number) =>
    eventually(
      async () => watch.problems(),
      (found) => found.length === wanted,
    );

  const [soon] = await problems(1);
  assert.equal(soon?.urgency, 'soon');
  assert.equal(
    soon?.message,
    `Login nodes do not take the next key, and let nobody in from ${new Date(start + 30 * day).toISOString()} on: alpha, login-1 (127.0.0.1:${node.port}): it does not take the key.`,
  );
  clock.now += 16 * day;
  assert.equal((await problems(1))[0]?.urgency, 'now');
  clock.now += 16 * day;
  assert.match(
    (await problems(1))[0]?.message ?? '',
    /^Login nodes do not take the present key, and let nobody in: alpha, login-1 /,
    'and it does not go with the former key',
  );
  // It takes the next one, and no other.
  set = withNext({ key: parsed(generateSshKey().privateKey) }, known, 30, clock.now);
  await problems(0);
  // One in the place of a stolen one, which holds alone at once.
  set = withNext({ key: known }, parsed(generateSshKey().privateKey), 0, clock.now);
  assert.match((await problems(1))[0]?.message ?? '', /^Login nodes do not take the present key/);
  set = { key: known };
  await problems(0);
});
