/** What the gateway offers in key exchange, the post-quantum exchange within ssh2, and host keys that take one another’s place. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Gateway } from '../../src/gateway/ssh/index.ts';
import { askKey } from '../../src/gateway/ssh/login/ask-key.ts';
import { createHostKeys } from '../../src/gateway/ssh/transport/host-keys.ts';
import { createAnswer, createQuestion, HYBRID } from '../../src/gateway/ssh/transport/hybrid-kex.ts';
import { readPrivateKey } from '../../src/gateway/ssh/transport/ssh2.ts';
import { blobOf, generateSshKey } from '../../src/lib/ssh/public-key.ts';
import { sshString, WireReader } from '../../src/lib/ssh/wire.ts';
import { fails } from '../support/heard.ts';
import { freePorts } from '../support/ports.ts';
import { type Lab, openLab, whyNot } from './lab.ts';

/** The name-lists of the gateway's KEXINIT, as they come over the wire before anything is said. */
async function offered(port: number): Promise<string[][]> {
  const socket = connect(port, '127.0.0.1');
  let bytes = Buffer.alloc(0);
  socket.write('SSH-2.0-test\r\n');
  for await (const chunk of socket) {
    bytes = Buffer.concat([bytes, chunk]);
    const start = bytes.indexOf('\n') + 1;
    if (bytes.length > start + 4 && bytes.length >= start + 4 + bytes.readUInt32BE(start)) break;
  }
  socket.destroy();
  const fields = new WireReader(bytes, bytes.indexOf('\n') + 1 + 5 + 17);
  return Array.from({ length: 8 }, () => fields.text().split(','));
}

describe('only modern algorithms', { skip: whyNot }, () => {
  let lab: Lab;
  before(async () => {
    lab = await openLab();
  });
  after(() => lab.close());

  test('no SHA-1, no CBC, no compression, strict key exchange, a post-quantum exchange first', async () => {
    const [kex = [], hostKeys = [], ...rest] = await offered(lab.gateway.port);
    const [ciphersUp = [], ciphersDown = [], macsUp = [], macsDown = [], zipUp = [], zipDown = []] = rest;
    assert.equal(kex[0], HYBRID);
    assert.ok(kex.includes('kex-strict-s-v00@openssh.com'));
    assert.deepEqual(hostKeys, ['ssh-ed25519']);
    assert.deepEqual([zipUp, zipDown], [['none'], ['none']]);
    assert.deepEqual([ciphersUp, macsUp], [ciphersDown, macsDown]);
    for (const name of [...kex, ...ciphersUp, ...macsUp])
      assert.doesNotMatch(name, /sha1(?!\d)|cbc|arcfour|3des|md5|group1[-_]|umac-64|diffie-hellman/, name);
    const macs = ['hmac-sha2-256', 'hmac-sha2-512'];
    assert.deepEqual(macsUp, [...macs.map((mac) => `${mac}-etm@openssh.com`), ...macs]);
  });

  test('a client with which nothing is in common is a line with what it offers, and more of its source are a sum', async () => {
    const own = await openLab();
    for (let n = 0; n < 3; n += 1)
      await own.ssh(['-o', 'Ciphers=aes128-ctr', '-o', 'MACs=umac-64@openssh.com', 'gateway', 'true']);
    await own.close();
    const refused = own.events.filter(({ event }) => /^gateway\.connections?\.refused$/.test(`${event}`));
    const [first, sum] = refused;
    assert.equal(first?.['reason'], 'no common algorithm');
    assert.match(
      `${first?.['detail']}`,
      /^OpenSSH_.*: Handshake failed: no matching C->S MAC: umac-64@openssh\.com$/,
    );
    assert.deepEqual([sum?.['reason'], sum?.['connections'], refused.length], ['no common algorithm', 2, 2]);
  });

  test('AES-GCM before ChaCha20 where the processor has AES', async () => {
    const hasAes = /\baes\b/.test(readFileSync('/proc/cpuinfo', 'latin1'));
    const ran = await lab.ssh(['-v', 'gateway', 'exit 3']);
    fails(ran, 3, hasAes ? /cipher: aes128-gcm@openssh\.com/ : /cipher: chacha20-poly1305@openssh\.com/);
    assert.match(ran.err, /compression: none/);
  });

  const known = execFileSync('ssh', ['-Q', 'kex'], { encoding: 'utf8' }).split('\n');
  for (const [what, option, shown] of [
    // As libssh2 1.10 has it, without encrypt-then-MAC.
    ...['hmac-sha2-256', 'hmac-sha2-512'].map((mac) => [
      mac,
      `-o Ciphers=aes256-ctr -o MACs=${mac}`,
      `cipher: aes256-ctr MAC: ${mac} compression`,
    ]),
    ...known
      .filter((name) => /^(curve25519|ecdh-sha2|mlkem)/.test(name))
      .map((kex) => [kex, `-o KexAlgorithms=${kex}`, `kex: algorithm: ${kex}`]),
  ] as [string, string, string][])
    test(`OpenSSH's ${what}, with new keys on the way`, async () => {
      const args = `${lab.options.join(' ')} -v ${option} -o RekeyLimit=100K`;
      const copy = `head -c 600000 /dev/urandom > k; ssh ${args} gateway cat < k | cmp - k`;
      const ran = await lab.run('sh', ['-c', copy]);
      assert.equal(ran.status, 0, ran.err);
      assert.ok(ran.err.includes(shown));
      assert.ok((ran.err.match(/SSH2_MSG_KEXINIT received/g)?.length ?? 0) > 3);
    });
});

test(`${HYBRID}: both halves come to one secret of 32 bytes, each time another`, () => {
  const secrets = new Set<string>();
  for (let n = 0; n < 20; n += 1) {
    const client = createQuestion();
    const server = createAnswer();
    assert.equal(client.toSend().length, 1216);
    const secret = server.secret(client.toSend());
    assert.equal(server.toSend().length, 1120);
    assert.deepEqual(client.secret(server.toSend()), secret);
    assert.equal(secret.length, 32);
    secrets.add(secret.toString('hex'));
  }
  assert.equal(secrets.size, 20);
});

test(`${HYBRID}: a changed byte of either half gives another secret, or none`, () => {
  for (const at of [0, 500, 1087, 1100]) {
    const client = createQuestion();
    const server = createAnswer();
    const secret = server.secret(client.toSend());
    const reply = Buffer.from(server.toSend());
    reply.writeUInt8(reply.readUInt8(at) ^ 1, at);
    assert.notDeepEqual(client.secret(reply), secret);
  }
  const { toSend } = createQuestion();
  assert.throws(() => createAnswer().secret(toSend().subarray(1)), /1215 bytes in place of 1216/);
  assert.throws(() => createAnswer().secret(Buffer.alloc(1216)));
  // A coefficient beyond the modulus (FIPS 203, section 7.2), and a point that gives zero (RFC 8731, section 3).
  assert.throws(() =>
    createAnswer().secret(Buffer.concat([Buffer.alloc(1184, 255), toSend().subarray(1184)])),
  );
  assert.throws(() => createAnswer().secret(Buffer.concat([toSend().subarray(0, 1184), Buffer.alloc(32)])));
});

test('a client learns the next key before it is used, and forgets the one before', {
  skip: whyNot,
}, async () => {
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

test('only keys of the gateway are proven, each at most once, and not for ever', { skip: whyNot }, () => {
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

test('a login node is asked about a key without a login', { skip: whyNot }, async () => {
  await using lab = await openLab();
  const { loginNode, username } = lab.route;
  const publicKey = readFileSync(join(lab.dir, 'client.pub'), 'utf8');
  const other = generateSshKey().publicKey;
  const clientKeys = [readFileSync(join(lab.dir, 'client'), 'utf8')];
  assert.equal(await askKey({ loginNode, username, publicKey, clientKeys }), undefined);
  assert.equal(
    await askKey({ loginNode, username, publicKey: other, clientKeys }),
    'it does not take the key',
  );
  const wrong = { ...loginNode, hostKey: other };
  assert.equal(
    await askKey({ loginNode: wrong, username, publicKey, clientKeys }),
    'it shows another host key',
  );
  const [port = 0] = await freePorts(1);
  assert.match(
    (await askKey({ loginNode: { ...loginNode, port }, username, publicKey, clientKeys })) ?? '',
    /^it cannot be reached \(.*ECONNREFUSED/,
  );
});

test('a login node that takes only one of the gateway’s keys lets people in, whichever is tried first', {
  skip: whyNot,
}, async () => {
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
