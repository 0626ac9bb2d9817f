/** The service's own keys where servers share a database: the same for all of them, whatever files a server has. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { importJWK, SignJWT } from 'jose';
import { createAuthenticator } from '../../src/api/identity/index.ts';
import { allKeys, type KeyKind, keyKinds, withNext } from '../../src/domain/key-rotation.ts';
import { createClock } from '../../src/lib/clock.ts';
import { createLogger, type Logger } from '../../src/lib/log.ts';
import { makeSecretsKey, type SecretsKeys } from '../../src/lib/secrets-key.ts';
import { createTrustedProxies } from '../../src/lib/source-address.ts';
import { loadSshKey } from '../../src/lib/ssh/public-key.ts';
import { startIssuer } from '../../src/service/compose/issuer.ts';
import { type KeyStore, keysInFiles, sharedKeys } from '../../src/service/compose/key-stores.ts';
import {
  describeKey,
  followKeys,
  loadServiceKeys,
  makeKey,
  type ServiceKeys,
} from '../../src/service/compose/service-keys.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { readKeyFiles, writeKeyFiles } from '../../src/store/data-dir/key-files.ts';
import { createIdentity } from '../../src/store/people/identities.ts';
import { openSecrets } from '../../src/store/servers/secrets.ts';
import { eventually, physics } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { keysOf } from '../support/service-keys.ts';
import { openTestStore, userId } from '../support/store.ts';

/** What a server has of the configuration. */
const configOf = (dataDir: string, secrets: SecretsKeys | undefined) => ({
  dataDir,
  database: 'postgres://db/andromeda',
  secrets,
  identity: { issuer: undefined } as never,
  console: {} as never,
});

test('two servers that start at once on an empty database have the same keys, and nothing on their disks', async () => {
  await using opened = await openTestStore();
  using one = temporaryDirectory();
  using two = temporaryDirectory();
  const secrets = keysOf(makeSecretsKey());
  const deps = { store: opened.store, log: createLogger('silent'), now: Date.now };
  const both = await Promise.all(
    [one, two].map(({ path }) => loadServiceKeys(configOf(path, secrets), deps)),
  );
  const ids = both.map((keys) => [
    ...keyKinds.map((kind) => describeKey(keys.of(kind).used).id),
    keys.of('issuer').used.cookie,
    keys.consoleSecret?.toString('hex'),
  ]);
  assert.deepEqual(ids[0], ids[1]);
  assert.equal(new Set(ids[0]).size, 6, 'each is another');
  assert.deepEqual([readdirSync(one.path), readdirSync(two.path)], [[], []]);
});

test('a key that is another than at the last start is said once', async () => {
  await using opened = await openTestStore();
  const { store, dataDir } = opened;
  const lines: string[] = [];
  const log = createLogger('info', (line) => lines.push(line));
  const config = { ...configOf(dataDir, undefined), database: undefined };
  const start = async () => (await loadServiceKeys(config, { store, log, now: Date.now })).of('host').used;
  const first = await start();
  assert.deepEqual([await start(), lines], [first, []]);
  writeKeyFiles(dataDir, 'host', { key: await makeKey('host') });
  const { fingerprint } = await start();
  await start();
  assert.equal(lines.length, 1, lines.join());
  assert.match(`${lines[0]}`, /"key\.changed".*The key host is another than at the last start/);
  assert.ok(lines[0]?.includes(fingerprint));
});

test('without the key of the secrets nothing starts, in a sentence that says what to do', async () => {
  await using opened = await openTestStore();
  const deps = { store: opened.store, log: createLogger('silent'), now: Date.now };
  await assert.rejects(loadServiceKeys(configOf(opened.dataDir, undefined), deps), {
    code: 'invalid_state',
    message: /andromeda admin secrets new-key FILE.*secretsKeyFile.*ANDROMEDA_SECRETS_KEY/,
  });
  assert.equal(existsSync(join(opened.dataDir, 'keys')), false);

  // A new one could not read what is there.
  const secrets = keysOf(makeSecretsKey());
  await loadServiceKeys(configOf(opened.dataDir, secrets), deps);
  await assert.rejects(loadServiceKeys(configOf(opened.dataDir, undefined), deps), ({ message }: Error) => {
    assert.ok(message.includes(`encrypted with the key ${secrets.keys[0].id}, which the other servers have`));
    assert.doesNotMatch(message, /new-key/);
    return true;
  });
});

test('a file is put into a database that has none, for all servers, and one that is another is said', async () => {
  await using opened = await openTestStore();
  using one = temporaryDirectory();
  using two = temporaryDirectory();
  const secrets = keysOf(makeSecretsKey());
  const said: unknown[] = [];
  const log = { ...createLogger('silent'), warn: (...args: unknown[]) => said.push(args) } as Logger;
  const load = (dataDir: string) =>
    loadServiceKeys(configOf(dataDir, secrets), { store: opened.store, log, now: Date.now });
  const file = (dataDir: string) => join(dataDir, 'keys/gateway_host_ed25519');
  mkdirSync(join(one.path, 'keys'));
  writeFileSync(file(one.path), 'no key');
  await assert.rejects(load(one.path), {
    code: 'invalid_state',
    message: /gateway_host_ed25519 cannot be used/,
  });
  rmSync(file(one.path));
  const { publicKey } = loadSshKey(file(one.path));
  const first = await load(one.path);
  const second = await load(two.path);
  for (const keys of [first, second]) assert.equal(keys.of('host').used.publicKey, publicKey);
  assert.deepEqual(said, []);

  loadSshKey(file(two.path));
  assert.equal((await load(two.path)).of('host').used.publicKey, publicKey);
  assert.match(
    JSON.stringify(said),
    /secrets\.differ.*gateway_host_ed25519 is not used: the secret gateway-host/,
  );
  assert.doesNotMatch(JSON.stringify(said), /PRIVATE/);
});

const day = 86_400_000;

/** As `admin key new` does. */
async function putNext(place: KeyStore, kind: KeyKind, keepDays: number): Promise<void> {
  const { key } = (await place.find(kind)) ?? { key: '' };
  const next = await makeKey(kind, { text: key, title: kind, stolen: keepDays === 0 });
  await place.change(kind, (set, now) => withNext(set, next, keepDays, now));
}

/** What the former and the next are known by, as far as they hold: the one that is used first. */
const idsOf = (keys: ServiceKeys, kind: KeyKind) => allKeys(keys.of(kind)).map((key) => describeKey(key).id);

for (const [where, isShared] of [
  ['files', false],
  ['the database', true],
] as const)
  test(`in ${where}, keys of every kind are added to others, used later, and go by themselves`, async () => {
    await using opened = await openTestStore();
    const { store, dataDir } = opened;
    const secrets = keysOf(makeSecretsKey());
    const clock = { now: Date.now() };
    const deps = { store, log: createLogger('silent'), now: () => clock.now };
    const config = { ...configOf(dataDir, secrets), ...(!isShared && { database: undefined }) };
    const [keys, other] = [await loadServiceKeys(config, deps), await loadServiceKeys(config, deps)];
    const place = isShared
      ? sharedKeys(dataDir, store, await openSecrets(store, secrets))
      : keysInFiles(dataDir, deps.now);
    for (const kind of keyKinds) {
      const [former = ''] = idsOf(keys, kind);
      await putNext(place, kind, 30);
      if (isShared) clock.now = Date.now();
      await keys.refresh();
      const [, next = ''] = idsOf(keys, kind);
      assert.ok(next !== '' && next !== former);
      assert.deepEqual(idsOf(keys, kind), [former, next]);
      clock.now += 15 * day;
      assert.deepEqual(idsOf(keys, kind), [next, former], 'by the time alone');
      assert.deepEqual(idsOf(await loadServiceKeys(config, deps), kind), [next, former], 'after a restart');
      clock.now += 15 * day;
      assert.deepEqual(idsOf(keys, kind), [next]);
      assert.ok((await place.find(kind))?.next, 'nobody has taken it away yet');
      assert.deepEqual(idsOf(await loadServiceKeys(config, deps), kind), [next]);
      if (!isShared) {
        await keys.refresh();
        const set = await place.find(kind);
        assert.equal(set?.next, undefined, 'and the former is nowhere any more');
        assert.deepEqual(idsOf(await loadServiceKeys(config, deps), kind), [next]);
      }
      await putNext(place, kind, 0);
      await other.refresh();
      const [alone, ...none] = idsOf(other, kind);
      assert.ok(alone !== next && none.length === 0, 'one in the place of a stolen one');
      await other.refresh();
      assert.equal((await place.find(kind))?.next, undefined);
    }
    const names = readdirSync(dataDir, { recursive: true }).map(String);
    assert.deepEqual(
      names.filter((name) => name.endsWith('.next')),
      [],
    );
    assert.equal(existsSync(join(dataDir, 'keys/gateway_host_ed25519')), !isShared);
  });

test('in the database, a key goes by the database’s clock, whatever that of a server says', async () => {
  await using opened = await openTestStore();
  const { store, dataDir } = opened;
  const secrets = keysOf(makeSecretsKey());
  const ahead = { store, log: createLogger('silent'), now: () => Date.now() + 31 * day };
  const keys = await loadServiceKeys(configOf(dataDir, secrets), ahead);
  const place = sharedKeys(dataDir, store, await openSecrets(store, secrets));
  await putNext(place, 'client', 30);
  await keys.refresh();
  assert.ok((await place.find('client'))?.next);
});

test('a key that was taken away by half is used as if all of it had been, and is taken away then', async () => {
  await using opened = await openTestStore();
  const { store, dataDir } = opened;
  const clock = { now: Date.now() };
  const deps = { store, log: createLogger('silent'), now: () => clock.now };
  const config = { ...configOf(dataDir, undefined), database: undefined };
  const keys = await loadServiceKeys(config, deps);
  await putNext(keysInFiles(dataDir, deps.now), 'host', 30);
  const both = readKeyFiles(dataDir, 'host');
  assert.ok(both?.next);
  const [file, pub] = ['', '.pub'].map((end) => join(dataDir, `keys/gateway_host_ed25519${end}`));
  clock.now += 30 * day;
  await keys.refresh();
  const [next] = idsOf(keys, 'host');
  const [key = '', publicPart = ''] = [file, pub].map((name) => readFileSync(String(name), 'utf8'));
  // As after kill -9 behind each of the writes.
  for (const written of [0, 1, 2]) {
    writeKeyFiles(dataDir, 'host', both);
    if (written > 0) writeFileSync(String(pub), publicPart);
    if (written > 1) writeFileSync(String(file), key);
    const after = await loadServiceKeys(config, deps);
    assert.deepEqual(idsOf(after, 'host'), [next]);
    await after.refresh();
    assert.equal(readFileSync(String(file), 'utf8'), key);
    assert.equal(readFileSync(String(pub), 'utf8'), publicPart);
    assert.ok(!existsSync(join(dataDir, 'keys/host.next')));
  }
  for (const name of readdirSync(join(dataDir, 'keys')))
    assert.equal(statSync(join(dataDir, 'keys', name)).mode & 0o777, 0o600, name);
});

test('a key that was put in the place of both by hand holds alone', async () => {
  await using opened = await openTestStore();
  const { dataDir } = opened;
  const place = keysInFiles(dataDir, Date.now);
  await place.findOrMake('host', () => makeKey('host'));
  await putNext(place, 'host', 30);
  const known = await makeKey('host');
  writeFileSync(join(dataDir, 'keys/gateway_host_ed25519'), known);
  assert.deepEqual(await place.find('host'), { key: known });
  await putNext(place, 'host', 30);
  assert.equal((await place.find('host'))?.key, known);
});

test('what a command does with the keys, every server takes up', async (t) => {
  await using opened = await openTestStore();
  const { store, dataDir } = opened;
  const secrets = keysOf(makeSecretsKey());
  const log = createLogger('silent');
  const keys = await loadServiceKeys(configOf(dataDir, secrets), { store, log, now: Date.now });
  // The message of another server, which there is none of on SQLite.
  const heard: (() => void)[] = [];
  const messages = {
    ...store.messages,
    on: (_topic: string, listener: () => void) => {
      heard.push(listener);
      return () => {};
    },
  };
  const uses: string[][] = [];
  const use = () => void uses.push(idsOf(keys, 'issuer'));
  t.after(followKeys(keys, { store: { ...store, messages } as never, log }, use));
  const [before] = idsOf(keys, 'issuer');
  await putNext(sharedKeys(dataDir, store, await openSecrets(store, secrets)), 'issuer', 30);
  for (const listener of heard) listener();
  const found = await eventually(
    async () => uses.at(-1),
    (ids) => ids?.length === 2,
  );
  assert.equal(found?.[0], before);
});

test('a token of a key that the embedded issuer has no more is refused from then on, also if it was accepted before', async () => {
  await using opened = await openTestStore(physics);
  const { store, dataDir } = opened;
  const file = join(dataDir, 'andromeda.yaml');
  writeFileSync(file, '{}');
  const config = readConfig(file);
  const clock = { now: Date.now() };
  const log = createLogger('silent');
  const keys = await loadServiceKeys(config, { store, log, now: () => clock.now });
  const [key] = keys.of('issuer').used.signing;
  assert.ok(key?.kid);
  const issuer = await startIssuer(config, {
    store,
    peers: { forOthers: () => undefined },
    proxies: createTrustedProxies([]),
    log,
    clock: createClock({}),
    keys,
  });
  const ada = await userId(store, 'ada@physics.example');
  await store.write((tx) => createIdentity(tx, { issuer: issuer.url, subject: 'ada', userId: ada }));
  const authenticate = createAuthenticator({
    store,
    rules: { issuer: issuer.url, audiences: config.identity.audiences, type: issuer.tokenType },
    keys: issuer.keys,
    userinfo: issuer.userinfo,
    markIdentity: () => '',
    now: Date.now,
  });
  const token = await new SignJWT({ aud: [...config.identity.audiences] })
    .setProtectedHeader({ alg: 'RS256', kid: key.kid, typ: 'at+jwt' })
    .setIssuer(issuer.url)
    .setSubject('ada')
    .setExpirationTime('10m')
    .sign(await importJWK(key, 'RS256'));
  const me = () => authenticate(`Bearer ${token}`, 'unauthorized');
  assert.equal(await me(), ada);
  await putNext(
    keysInFiles(config.dataDir, () => clock.now),
    'issuer',
    30,
  );
  for (const days of [0, 16]) {
    clock.now += days * day;
    await keys.refresh();
    issuer.refreshKeys?.();
    assert.equal(await me(), ada, 'its key is published still');
  }
  clock.now += 15 * day;
  issuer.refreshKeys?.();
  await assert.rejects(me(), { code: 'unauthorized' });
});
