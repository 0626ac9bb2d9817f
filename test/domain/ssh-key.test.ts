import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { disuseOf } from '../../src/domain/access/lapse.ts';
import { parseSshPublicKey } from '../../src/domain/access/ssh-key.ts';
import { newSecurityKey } from '../support/security-keys.ts';
import { keygen, keygenFingerprint, lengthPrefixed, newPublicKey, rfc4716 } from '../support/ssh-keys.ts';

const key = newPublicKey();
const base64 = key.split(' ')[1] ?? '';
const { publicKey, privateKey } = keygen('-t', 'ed25519');

/** A key of another type or shape, as one line. */
function line(type: string, ...parts: (string | Uint8Array)[]): string {
  return `${type} ${Buffer.concat(parts.map(lengthPrefixed)).toString('base64')}`;
}

test('a key made by ssh-keygen is accepted, its comment dropped', () => {
  const parsed = parseSshPublicKey(publicKey);
  assert.equal(parsed.type, 'ssh-ed25519');
  assert.equal(parsed.material, publicKey.split(' ').slice(0, 2).join(' '));
});

test('the fingerprint is the one that ssh-keygen -lf prints', () => {
  for (const one of [publicKey, newPublicKey(), newPublicKey()]) {
    assert.equal(parseSshPublicKey(one).fingerprint, keygenFingerprint(one));
  }
});

const accepted: [string, string][] = [
  ['no comment', key],
  ['a comment of several words', `${key} ada lovelace, her laptop`],
  ['white space around it', `  \t${key} ada@laptop \r\n\n`],
  ['several blanks between the parts', key.replace(' ', ' \t ')],
];
for (const [what, text] of accepted) {
  test(`a key is the same key with ${what}`, () => assert.equal(parseSshPublicKey(text).material, key));
}

function block(...lines: string[]): string {
  return ['---- BEGIN SSH2 PUBLIC KEY ----', ...lines, '---- END SSH2 PUBLIC KEY ----'].join('\n');
}

test('a key in the format of RFC 4716 is the same key, as PuTTYgen and ssh-keygen write it', () => {
  const [a = '', b = ''] = [base64.slice(0, 64), base64.slice(64)];
  const saved = [
    rfc4716(key),
    block('Comment: "ada\'s key"', a, b),
    block('Comment: "ada\\', '\'s key"', 'x-note: a: b', a, b).replaceAll('\n', '\r\n'),
    `${block(base64)}\n`,
    block(a, b).replaceAll('\n', '\r'),
    block(a, b).replaceAll('\n', ' \n').replace('BEGIN', 'BEGIN '),
  ];
  assert.deepEqual(
    saved.map((text) => parseSshPublicKey(text).material),
    Array(6).fill(key),
  );
  assert.deepEqual(
    saved.slice(1).map((text) => parseSshPublicKey(text).comment),
    ["ada's key", "ada's key", '', '', ''],
  );
});

const cut = base64.slice(0, -4);
const sk = 'sk-ssh-ed25519@openssh.com';
const certificate = 'ssh-ed25519-cert-v01@openssh.com';
const rsa = line('ssh-rsa', 'ssh-rsa', Buffer.from([1, 0, 1]), Buffer.alloc(257, 7));
const oneLine = privateKey.replaceAll('\n', ' ');
const mayBe =
  /^That may be a private key, or a part of one\. Keep it secret, and send the file that ends in \.pub\.$/;
const seed = randomBytes(32);
const pair = generateKeyPairSync('ed25519');
const rsaPair = generateKeyPairSync('rsa', { modulusLength: 2048 });
const bodyOf = (one: KeyObject, type: 'pkcs1' | 'pkcs8') =>
  one.export({ format: 'pem', type }).toString().split('\n').slice(1, -2).join('\n');
const pemOf = (one: KeyObject) => one.export({ format: 'pem', type: 'spki' }).toString();
const refused: [string, string, RegExp][] = [
  ['nothing', '', /empty/],
  ['white space', ' \n\t', /empty/],
  ['an RSA key', rsa, /not ssh-rsa/],
  ['an ECDSA key', keygen('-t', 'ecdsa').publicKey, /not ecdsa-sha2-nistp256/],
  ['a key on a security token', line(sk, sk, Buffer.alloc(32), 'ssh:'), /not sk-ssh-ed25519@openssh.com/],
  ['a certificate', line(certificate, certificate, Buffer.alloc(32)), /^That is a certificate\. .*\.pub/],
  ['a certificate authority', `cert-authority ${key}`, /^That is the key of a certificate authority/],
  ['one of known_hosts', `@cert-authority *.example ${key}`, /^That is the key of a certificate auth/],
  ['a private key', privateKey, /private key/],
  ['two keys on two lines', `${key}\n${newPublicKey()}`, /one public key/],
  ['two keys run into one line', `${key} ada@laptop ${newPublicKey()}`, /one public key/],
  ['the same key twice', `${key}\n${key}`, /one public key/],
  ['options before the key', `from="10.0.0.0/8" ${key}`, /options of authorized_keys, does not hold/],
  ['a command before the key', `command="/bin/sh -c x",no-pty ${key} me`, /Send the key alone/],
  ['options before an RSA key', 'no-pty ssh-rsa AAAAB3NzaC1yc2E', /Send the key alone/],
  ['the base64 alone', base64, /The type of the key is missing.*: ssh-ed25519 AAAA/],
  ['the base64 and a comment', `${base64} ada@laptop`, /The type of the key is missing/],
  ['a public key in PEM', pemOf(pair.publicKey), /not in OpenSSH’s format.*ssh-keygen -y/],
  ['a public RSA key in PEM', pemOf(rsaPair.publicKey), /not in OpenSSH’s format/],
  ['the type alone', 'ssh-ed25519', /not readable/],
  ['base64 with a wrong character', `ssh-ed25519 ${base64.slice(0, 20)}!${base64.slice(21)}`, /not read/],
  ['base64 written for addresses', `ssh-ed25519 ${base64.slice(0, 60)}-_${base64.slice(62)}`, /not readable/],
  ['base64 that was cut off', `ssh-ed25519 ${cut}`, /not readable/],
  ['base64 with something behind it', `ssh-ed25519 ${base64}AAAA`, /not readable/],
  ['base64 with padding that is too much', `ssh-ed25519 ${base64}=`, /not readable/],
  ['a type inside that is another', line('ssh-ed25519', 'ssh-ed25518', Buffer.alloc(32)), /not readable/],
  ['a key of 31 bytes', line('ssh-ed25519', 'ssh-ed25519', Buffer.alloc(31)), /not readable/],
  ['a key of 33 bytes', line('ssh-ed25519', 'ssh-ed25519', Buffer.alloc(33)), /not readable/],
  ['the type in capitals', key.replace('ssh-ed25519', 'SSH-ED25519'), /Only Ed25519/],
  ['a PuTTY file', 'PuTTY-User-Key-File-3: ssh-ed25519', /That is a private key/],
  ['a part of a PuTTY file', `Public-Lines: 2\n${base64}\nPrivate-Lines: 1\nAAAA`, /That is a private key/],
  ['the rest of a private key', privateKey.split('\n').slice(1).join('\n'), /That is a private key/],
  ['a private key in PEM', '-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKC', /That is a private key/],
  ['a private key of SSH2', '---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2/56', /That is a private key/],
  ['lines from the middle of a private key', privateKey.split('\n').slice(2, -2).join('\n'), mayBe],
  ['a seed in hex', seed.toString('hex'), mayBe],
  ['a seed in base64', seed.toString('base64'), mayBe],
  ['a JWK', JSON.stringify(pair.privateKey.export({ format: 'jwk' })), /^That is a private key\./],
  ['PKCS#8 without its lines', bodyOf(pair.privateKey, 'pkcs8'), /^That is a private key\./],
  ['PKCS#8 of an RSA key without its lines', bodyOf(rsaPair.privateKey, 'pkcs8'), /^That is a private key\./],
  ['PKCS#1 without its lines', bodyOf(rsaPair.privateKey, 'pkcs1'), /^That is a private key\./],
  ['a private key behind a public one', `${key} ${oneLine}`, /That is a private key/],
  ['an RSA key of RFC 4716', block(rsa.split(' ')[1] ?? ''), /not ssh-rsa/],
  ['an empty key of RFC 4716', block('AA'), /Only Ed25519/],
  ['a cut key of RFC 4716', block(base64.slice(0, -4)), /not readable/],
  ['RFC 4716 without its end', `---- BEGIN SSH2 PUBLIC KEY ----\n${base64}`, /RFC 4716 whose lines/],
  ['two keys of RFC 4716', `${block(base64)}\n${block(base64)}`, /one public key/],
];

for (const [what, text, sentence] of refused) {
  test(`refused: ${what}`, () => {
    assert.throws(() => parseSshPublicKey(text), { code: 'invalid_request', message: sentence });
  });
}

test('a key in a security key is read where those are accepted', () => {
  const { publicKey: text } = newSecurityKey('ssh:lab');
  const parsed = parseSshPublicKey(`${text} ada's key`, { securityKeys: true });
  assert.deepEqual([parsed.type, parsed.material, parsed.comment], [text.split(' ')[0], text, "ada's key"]);
  assert.equal(parsed.fingerprint, keygenFingerprint(text));
  assert.throws(() => parseSshPublicKey(text), /^DomainError: Only Ed25519 keys are accepted, not sk-ssh-/);
  assert.equal(parseSshPublicKey(key, { securityKeys: true }).type, 'ssh-ed25519');
});

const refusedSecurityKeys: [string, string, RegExp][] = [
  ['for a web site', newSecurityKey('https://lab.example').publicKey, /does not begin with “ssh:”/],
  ['whose point proves nothing', line(sk, sk, Buffer.alloc(32), 'ssh:'), /anyone can sign for it/],
  ['that is ECDSA', line('sk-ecdsa-sha2-nistp256@openssh.com'), /not sk-ecdsa\S+ Make one.* ed25519-sk$/],
  ['with a certificate', line('sk-ssh-ed25519-cert-v01@openssh.com'), /^That is a certificate/],
  ['of a browser', line('webauthn-sk-ecdsa-sha2-nistp256@openssh.com'), /not webauthn-sk-ecdsa/],
  ['that was cut off', newSecurityKey('ssh:ab').publicKey.slice(0, -4), /not readable/],
  ['with something behind it', `${newSecurityKey('ssh:').publicKey.replace(/=+$/, '')}A`, /not readable/],
];
for (const [what, text, sentence] of refusedSecurityKeys) {
  test(`refused where security keys are accepted: one ${what}`, () =>
    assert.throws(() => parseSshPublicKey(text, { securityKeys: true }), {
      code: 'invalid_request',
      message: sentence,
    }));
}

test('a refusal never repeats what may be a secret', () => {
  for (const text of [privateKey, `hunter2SECRET ${base64}`, `${'x'.repeat(500)} y`]) {
    assert.throws(
      () => parseSshPublicKey(text),
      (error: Error) => !/hunter2|xxxx|b3BlbnNzaC1rZXk/.test(error.message),
    );
  }
});

/** Ed25519's field, its curve's d, and whether a point (x, y) times 8 is the neutral element, by the group's own law. */
const prime = 2n ** 255n - 19n;
const mod = (n: bigint) => ((n % prime) + prime) % prime;
const power = (base: bigint, exponent: bigint): bigint =>
  exponent === 0n ? 1n : mod(power(mod(base * base), exponent / 2n) * (exponent % 2n === 1n ? base : 1n));
const inverse = (n: bigint) => power(mod(n), prime - 2n);
const d = mod(-121665n * inverse(121666n));

function isNeutralTimes8(y: bigint): boolean {
  // Doubling needs x² only: x(2P)² and y(2P) follow from x² and y².
  let [xx, yy, now] = [mod((y * y - 1n) * inverse(d * y * y + 1n)), mod(y * y), mod(y)];
  for (let doubling = 0; doubling < 3; doubling += 1) {
    const product = mod(d * xx * yy);
    const x2 = mod(4n * xx * yy * inverse((1n + product) ** 2n));
    now = mod((yy + xx) * inverse(1n - product));
    [xx, yy] = [x2, mod(now * now)];
  }
  return now === 1n;
}

const littleEndian = (y: bigint) => Buffer.from(y.toString(16).padStart(64, '0'), 'hex').reverse();
const eighth = BigInt(
  `0x${Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'hex').reverse().toString('hex')}`,
);
for (const y of [0n, 1n, eighth, prime - eighth, prime - 1n, prime, prime + 1n]) {
  for (const sign of [0n, 2n ** 255n]) {
    test(`a key that anyone can sign for is refused: y = ${y}, sign ${sign ? 1 : 0}`, () => {
      assert.ok(isNeutralTimes8(y));
      const text = line('ssh-ed25519', 'ssh-ed25519', littleEndian(y + sign));
      assert.throws(() => parseSshPublicKey(text), /anyone can sign for it/);
    });
  }
}

test('a key next to one of those is as good as any', () => {
  for (const y of [2n, eighth + 1n, prime - 2n, prime + 2n]) {
    assert.equal(isNeutralTimes8(y), false);
    assert.ok(parseSshPublicKey(line('ssh-ed25519', 'ssh-ed25519', littleEndian(y))));
  }
});

test('a key that was never used is marked after a day, one that was used after ninety without a login', () => {
  const day = 86_400_000;
  const now = Date.parse('2030-06-01T00:00:00.000Z');
  const ago = (days: number) => new Date(now - days * day).toISOString();
  const rows = [
    [0.9, null, undefined],
    [1, null, 'never used'],
    [400, 89.9, undefined],
    [400, 90, 'not used for 90 days'],
    [400, 200.5, 'not used for 200 days'],
  ] as const;
  for (const [made, used, disuse] of rows)
    assert.equal(
      disuseOf({ createdAt: ago(made), lastUsedAt: used === null ? null : ago(used) }, now),
      disuse,
      `${made} ${used}`,
    );
});
