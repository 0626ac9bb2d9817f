/** The service's own keys where servers share a database: the same for all of them, and a file wins. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { importJWK, SignJWT } from 'jose';
import { createAuthenticator } from '../../src/api/identity/index.ts';
import {
  type IssuerKeys,
  makeKeys,
  makeSigningKey,
  stepSigningKeys,
} from '../../src/api/identity/issuer/keys.ts';
import { createClock } from '../../src/lib/clock.ts';
import { createLogger, type Logger } from '../../src/lib/log.ts';
import { makeSecretsKey, parseSecretsKeys, type SecretsKeys } from '../../src/lib/secrets-key.ts';
import { createTrustedProxies } from '../../src/lib/source-address.ts';
import { loadSshKeySet } from '../../src/lib/ssh/key-set.ts';
import { startIssuer } from '../../src/service/compose/issuer.ts';
import { loadServiceKeys, watchIssuerKeys } from '../../src/service/compose/service-keys.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { sharedKeys } from '../../src/service/host/held-keys.ts';
import { createIdentity } from '../../src/store/people/identities.ts';
import { openSecrets } from '../../src/store/servers/secrets.ts';
import { physics } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { openTestStore, userId } from '../support/store.ts';

const keysOf = (text: string): SecretsKeys => {
  const keys: SecretsKeys = parseSecretsKeys(text, 'the file', () => keys);
  return keys;
};

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
  const deps = { store: opened.store, log: createLogger('silent') };
  const both = await Promise.all(
    [one, two].map(({ path }) => loadServiceKeys(configOf(path, secrets), deps)),
  );
  const ids = both.map(({ hostKey, clientKey, auditKey, issuerKeys, consoleSecret }) => [
    hostKey.publicKey,
    clientKey.publicKey,
    auditKey?.publicKey,
    issuerKeys?.signing[0]?.kid,
    issuerKeys?.cookie,
    consoleSecret?.toString('hex'),
  ]);
  assert.deepEqual(ids[0], ids[1]);
  assert.equal(new Set(ids[0]).size, 6, 'each is another');
  assert.deepEqual([readdirSync(one.path), readdirSync(two.path)], [[], []]);
});

test('without the key of the secrets nothing starts, in a sentence that says what to do', async () => {
  await using opened = await openTestStore();
  const deps = { store: opened.store, log: createLogger('silent') };
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

test('a file wins, is put into an empty database for the others, and a difference is said', async () => {
  await using opened = await openTestStore();
  using one = temporaryDirectory();
  using two = temporaryDirectory();
  const secrets = keysOf(makeSecretsKey());
  const said: unknown[] = [];
  const log = { ...createLogger('silent'), warn: (...args: unknown[]) => said.push(args) } as Logger;
  const load = (dataDir: string) => loadServiceKeys(configOf(dataDir, secrets), { store: opened.store, log });
  const { publicKey } = loadSshKeySet(join(one.path, 'keys/gateway_host_ed25519'));
  const first = await load(one.path);
  const second = await load(two.path);
  assert.deepEqual([first.hostKey.publicKey, second.hostKey.publicKey], [publicKey, publicKey]);
  assert.deepEqual(said, []);

  const other = loadSshKeySet(join(two.path, 'keys/gateway_host_ed25519'));
  assert.equal((await load(two.path)).hostKey.publicKey, other.publicKey);
  assert.match(
    JSON.stringify(said),
    /secrets\.differ.*keys\/gateway_host_ed25519 is used, and the secret gateway-host/,
  );
  assert.doesNotMatch(JSON.stringify(said), /PRIVATE/);
  writeFileSync(join(two.path, 'keys/gateway_host_ed25519'), 'no key');
  await assert.rejects(load(two.path), { code: 'invalid_state' });
  assert.equal(readFileSync(join(two.path, 'keys/gateway_host_ed25519'), 'utf8'), 'no key');
});

test('what a command does with the issuer’s keys, every server takes up', async (t) => {
  await using opened = await openTestStore();
  const { store, dataDir } = opened;
  const log = createLogger('silent');
  const secrets = keysOf(makeSecretsKey());
  const config = configOf(dataDir, secrets);
  const keys = await loadServiceKeys(config, { store, log });
  // The message of another server, which there is none of on SQLite.
  const heard: (() => void)[] = [];
  const messages = {
    ...store.messages,
    on: (_topic: string, listener: () => void) => {
      heard.push(listener);
      return () => {};
    },
  };
  const { promise, resolve } = Promise.withResolvers<IssuerKeys>();
  t.after(watchIssuerKeys(keys, { dataDir, store: { ...store, messages } as never, log }, resolve));
  const holder = await sharedKeys({ dataDir, secrets }, store);
  const before = await holder.read('issuer');
  await holder.take('announce', 'issuer');
  const after = await holder.read('issuer');
  for (const listener of heard) listener();
  const { next, cookie } = await promise;
  assert.equal(next?.kid, after?.next);
  assert.equal(after?.current, before?.current);
  assert.equal(cookie, keys.issuerKeys?.cookie);
});

test('a token of a key that the embedded issuer has no more is refused from then on, also if it was accepted before', async (t) => {
  await using opened = await openTestStore(physics);
  const { store, dataDir } = opened;
  const file = join(dataDir, 'andromeda.yaml');
  writeFileSync(file, '{}');
  const config = readConfig(file);
  let keys = await makeKeys();
  const [key] = keys.signing;
  assert.ok(key?.kid);
  const issuer = await startIssuer(config, {
    store,
    peers: { forOthers: () => undefined },
    proxies: createTrustedProxies([]),
    log: createLogger('silent'),
    clock: createClock({}),
    issuerKeys: keys,
  });
  t.after(() => issuer.stop());
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
  const use = (next: IssuerKeys) => {
    keys = next;
    issuer.useKeys?.(keys);
  };
  const me = () => authenticate(`Bearer ${token}`, 'unauthorized');
  assert.equal(await me(), ada);
  use(stepSigningKeys('announce', keys, await makeSigningKey()));
  use(stepSigningKeys('switch', keys, undefined));
  assert.equal(await me(), ada, 'its key is published still');
  use(stepSigningKeys('retire', keys, undefined));
  await assert.rejects(me(), { code: 'unauthorized' });
});

test('steps with the gateway’s keys are taken in the database, and on a file where there is one', async () => {
  await using opened = await openTestStore();
  const { store, dataDir } = opened;
  const secrets = keysOf(makeSecretsKey());
  const keys = await loadServiceKeys(configOf(dataDir, secrets), { store, log: createLogger('silent') });
  const holder = await sharedKeys({ dataDir, secrets }, store);
  assert.equal((await holder.read('host'))?.current, keys.hostKey.fingerprint);
  for (const step of ['announce', 'switch'] as const) await holder.take(step, 'host');
  const held = await holder.read('host');
  assert.equal(held?.previous, keys.hostKey.fingerprint);
  const again = await loadServiceKeys(configOf(dataDir, secrets), { store, log: createLogger('silent') });
  assert.equal(again.hostKey.fingerprint, held?.current);
  assert.equal(again.hostKey.previous?.fingerprint, keys.hostKey.fingerprint);

  const file = join(dataDir, 'keys/gateway_host_ed25519');
  const own = loadSshKeySet(file);
  assert.equal((await holder.read('host'))?.file, file);
  await holder.take('announce', 'host');
  assert.ok(existsSync(`${file}.next`));
  assert.equal((await holder.read('host'))?.current, own.fingerprint);
  const shared = await (await openSecrets(store, secrets)).find('gateway-host');
  assert.doesNotMatch(shared ?? '', /next/);
});
