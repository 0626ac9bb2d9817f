/** Keys of the gateway that take one another's place, as OpenSSH's client learns them, and as its sshd takes them. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Gateway } from '../../src/gateway/ssh/index.ts';
import { askKey } from '../../src/gateway/ssh/login/ask-key.ts';
import { createHostKeys } from '../../src/gateway/ssh/transport/host-keys.ts';
import { readPrivateKey } from '../../src/gateway/ssh/transport/ssh2.ts';
import { blobOf, generateSshKey } from '../../src/lib/ssh/public-key.ts';
import { sshString, WireReader } from '../../src/lib/ssh/wire.ts';
import { freePorts } from '../support/ports.ts';
import { openLab, test } from './lab.ts';

test('a client learns the next key before it is used, and forgets the one before', async () => {
  await using lab = await openLab();
  const known = join(lab.dir, 'learned');
  const name = `[127.0.0.1]:${lab.gateway.port}`;
  const [one, two] = [
    { privateKey: readFileSync(join(lab.dir, 'host'), 'utf8'), publicKey: publicText('host') },
    generateSshKey(),
  ];
  function publicText(file: string) {
    return readFileSync(join(lab.dir, `${file}.pub`), 'utf8').trim();
  }
  const clientKeys = [readFileSync(join(lab.dir, 'client'), 'utf8')];
  const configure = (...hostKeys: string[]) => (lab.gateway as Gateway).configure({ hostKeys, clientKeys });
  // A login that is long enough for the client to ask.
  const logIn = async () => {
    const options = ['-o', `UserKnownHostsFile=${known}`, '-o', 'UpdateHostKeys=yes'];
    const { status, err } = await lab.ssh([...options, 'gateway', 'sleep 0.3']);
    assert.equal(status, 0, err);
    assert.equal(err, '');
    return readFileSync(known, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith(name))
      .map((line) => line.split(' ').slice(1, 3).join(' '));
  };
  writeFileSync(known, `${name} ${one.publicKey}\n`);
  assert.deepEqual(await logIn(), [one.publicKey]);
  configure(one.privateKey, two.privateKey);
  assert.deepEqual(await logIn(), [one.publicKey, two.publicKey]);
  configure(two.privateKey, one.privateKey);
  assert.deepEqual(await logIn(), [one.publicKey, two.publicKey]);
  configure(two.privateKey);
  assert.deepEqual(await logIn(), [two.publicKey]);
});

test('only keys of the gateway are proven, each at most once, and not for ever', () => {
  const [one, two, foreign] = [generateSshKey(), generateSshKey(), generateSshKey()];
  const open = () => createHostKeys([one, two].map(({ privateKey }) => readPrivateKey(privateKey)));
  const asking = (...keys: { publicKey: string }[]) =>
    new WireReader(Buffer.concat(keys.map(({ publicKey }) => sshString(blobOf(publicKey)))));
  const id = Buffer.alloc(32);
  assert.ok(open().prove(id, asking(one, two)));
  assert.equal(open().prove(id, asking()), undefined);
  assert.equal(open().prove(id, asking(one, foreign)), undefined);
  assert.equal(open().prove(id, asking(one, one, one)), undefined);
  const hostKeys = open();
  for (let n = 0; n < 4; n += 1) assert.ok(hostKeys.prove(id, asking(two)));
  assert.equal(hostKeys.prove(id, asking(two)), undefined);
});

test('a login node is asked about a key without a login', async () => {
  await using lab = await openLab();
  const { loginNode, username } = lab.route;
  const publicKey = readFileSync(join(lab.dir, 'client.pub'), 'utf8');
  const other = generateSshKey().publicKey;
  assert.equal(await askKey({ loginNode, username, publicKey }), undefined);
  assert.equal(await askKey({ loginNode, username, publicKey: other }), 'it does not take the key');
  const wrong = { ...loginNode, hostKey: other };
  assert.equal(await askKey({ loginNode: wrong, username, publicKey }), 'it shows another host key');
  const [port = 0] = await freePorts(1);
  assert.match(
    (await askKey({ loginNode: { ...loginNode, port }, username, publicKey })) ?? '',
    /^it cannot be reached \(.*ECONNREFUSED/,
  );
});

test('a login node that takes only one of the gateway’s keys lets people in, whichever is tried first', async () => {
  await using lab = await openLab();
  const [hostKey, known] = ['host', 'client'].map((name) => readFileSync(join(lab.dir, name), 'utf8'));
  const other = generateSshKey().privateKey;
  assert.ok(hostKey && known);
  const logIn = async (...clientKeys: string[]) => {
    (lab.gateway as Gateway).configure({ hostKeys: [hostKey], clientKeys });
    const { status, out } = await lab.ssh(['gateway', 'echo in']);
    return status === 0 && out === 'in\n';
  };
  assert.equal(await logIn(known), true);
  assert.equal(await logIn(known, other), true);
  assert.equal(await logIn(other, known), true);
  assert.equal(await logIn(other), false);
  assert.equal(await logIn(other, generateSshKey().privateKey), false);
});
