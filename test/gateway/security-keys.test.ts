/** Security keys, from the registration to a shell: OpenSSH's own client with a provider in software, and a client of ours. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { sshFingerprint } from '../../src/domain/access/ssh-key.ts';
import { createLogger } from '../../src/lib/log.ts';
import { signedData } from '../../src/lib/ssh/public-key.ts';
import { message, SSH, sshString, WireReader } from '../../src/lib/ssh/wire.ts';
import { startApp } from '../../src/service/compose/index.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { alpha, becomes, eventually, startTestApp, type TestApp } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fails } from '../support/heard.ts';
import { buildProvider, newSecurityKey, type Said } from '../support/security-keys.ts';
import { keygen } from '../support/ssh-keys.ts';
import { sshPerson } from '../support/ssh-person.ts';
import { rawUnauthenticated } from './clients/raw.ts';

const type = 'sk-ssh-ed25519@openssh.com';
const directory = temporaryDirectory();
after(() => directory[Symbol.dispose]());
const provider = buildProvider(directory.path);
const file = 'file' in provider ? provider.file : '';
/** For ssh, which asks the provider for a signature. */
const withKey = ['-o', `SecurityKeyProvider=${file}`];

const securityKey = (...options: string[]) => keygen('-t', 'ed25519-sk', '-w', file, ...options);

function register(service: TestApp, name: string, { publicKey }: { publicKey: string }) {
  return service.write('/me/ssh-keys', { as: name, body: { public_key: publicKey } });
}

/** The types of keys that the gateway announces to ssh, ahead of those that are only named. */
function announced(err: string): string | undefined {
  return /server-sig-algs=<([^>]*),rsa-sha2-512,rsa-sha2-256,ssh-rsa>/.exec(err)?.[1];
}

describe('with the real ssh', { skip: 'whyNot' in provider && provider.whyNot }, () => {
  test('a security key is registered and logs in, by a gateway process of its own too', async () => {
    await using service = await startTestApp({ gateway: { securityKeys: true, processes: 1 } });
    using ada = await sshPerson(service, 'ada', securityKey());
    const ran = await ada.ssh([...withKey, '-vv', ada.target, 'exit 7']);
    fails(ran, 7, /Server accepts key: \S+ ED25519-SK /);
    assert.equal(announced(ran.err), `ssh-ed25519,${type}`);
    const { body } = await service.business('/me/ssh-keys', { as: 'ada' });
    assert.deepEqual(
      body.keys.map((key: { key_type: string; public_material: string }) => [
        key.key_type,
        key.public_material.split(' ')[0],
      ]),
      [[type, type]],
    );
    // It is a key like others in what clusters are told, and what people see of it.
    assert.deepEqual((await ada.access())['key_fingerprints'], [body.keys[0].fingerprint]);
    const again = await register(service, 'bob', { publicKey: body.keys[0].public_material });
    assert.equal(again.status, 409);
  });

  test('switched off again, a registered security key is refused in words, and other keys go on', async () => {
    await using service = await startTestApp({ gateway: { securityKeys: true } });
    using ada = await sshPerson(service, 'ada', securityKey('-O', 'application=ssh:lab'));
    using bob = await sshPerson(service, 'bob');
    assert.equal((await ada.ssh([...withKey, ada.target, 'exit 7'])).status, 7);

    await service.app[Symbol.asyncDispose]();
    const settings = join(service.dataDir, 'andromeda.yaml');
    writeFileSync(
      settings,
      readFileSync(settings, 'utf8').replace('securityKeys: true', 'securityKeys: false'),
    );
    await using _ = await startApp({ config: readConfig(settings), log: createLogger('silent') });
    const words =
      /Security keys are not accepted here \(no_keys\)\. Make another key with `ssh-keygen -t ed25519`/;
    const { status, err } = await ada.ssh([...withKey, '-vv', ada.target, 'true']);
    assert.equal(status, 255);
    assert.match(err, words);
    assert.equal(announced(err), 'ssh-ed25519');
    const { ready, reason, lapsed, key_fingerprints: keys } = await ada.access();
    assert.deepEqual([ready, reason, keys], [false, 'no_keys', []]);
    assert.match(String(lapsed), words);
    await eventually(bob.access, (access) => access['ready'] === true);
    assert.equal((await bob.ssh([bob.target, 'exit 5'])).status, 5);
  });

  test('where the staff need security keys, another key of theirs is refused, in an open session too', async () => {
    await using service = await startTestApp({
      gateway: { securityKeys: true, requireSecurityKeys: 'staff' },
    });
    using bob = await sshPerson(service, 'bob');
    const session = bob.start([bob.target, 'echo up; exec sleep 60']);
    await session.said;
    const staffed = await service.write(`/operator/people/${bob.userId}/staff-keys`, {
      ...{ as: 'root', method: 'PUT', body: { staff_keys: ['staff.read'] } },
    });
    assert.equal(staffed.status, 200);
    const words =
      /You hold staff keys, and staff log in with a security key only \(no_keys\)\. Make one with `ssh-keygen -t ed25519-sk`/;
    assert.match((await session.ended).err, words);
    fails(await bob.ssh([bob.target, 'true']), 255, words);
    assert.match(String((await bob.access())['lapsed']), words);
    const { body } = await service.business('/me/access', { as: 'bob' });
    assert.match(JSON.stringify(body), /You hold staff keys, so only a security key lets you in/);

    using safe = await sshPerson(service, 'bob', securityKey());
    assert.equal((await safe.ssh([...withKey, safe.target, 'exit 5'])).status, 5);
    assert.match((await bob.ssh([bob.target, 'true'])).err, words);
  });
});

test('by default security keys are not taken and not announced', async () => {
  await using service = await startTestApp();
  const { status, body } = await register(service, 'ada', newSecurityKey());
  assert.equal(status, 400);
  assert.match(
    body.error,
    /^Only Ed25519 keys are accepted, not sk-ssh-ed25519@openssh\.com\. Make one with/,
  );
  using bob = await sshPerson(service, 'bob');
  const { err } = await bob.ssh(['-vv', bob.target, 'true']);
  assert.equal(announced(err), 'ssh-ed25519');
});

/** Logs in as a client may that has the key in software; what the gateway answers to the signature, and the text before it. */
async function logIn(
  service: TestApp,
  key: ReturnType<typeof newSecurityKey>,
  { said = {}, algorithm = type, spoil = (signature) => signature }: Tampering = {},
): Promise<[answer: number | undefined, text: string]> {
  const { transport, heard, types, ended, close } = await rawUnauthenticated({
    gateway: { port: service.gatewayPort },
  });
  transport.send(message(SSH.SERVICE_REQUEST, 'ssh-userauth'));
  const how = ['ssh-connection', 'publickey', true, algorithm, key.blob] as const;
  const request = message(SSH.USERAUTH_REQUEST, `${alpha}.ada`, ...how);
  const signature = spoil(key.sign(signedData(transport.sessionId, request), said));
  transport.send(Buffer.concat([request, sshString(signature)]));
  const answer = () => types().find((one) => one === SSH.USERAUTH_SUCCESS || one === SSH.USERAUTH_FAILURE);
  await becomes(() => answer() !== undefined || ended() !== '', true);
  close();
  const banners = heard.filter(([one]) => one === SSH.USERAUTH_BANNER);
  return [answer(), banners.map((banner) => new WireReader(banner, 1).text()).join('')];
}

interface Tampering {
  said?: Said;
  algorithm?: string;
  spoil?: (signature: Buffer) => Buffer;
}

/** Says of a signature that there was a touch. */
const touched = (signature: Buffer) => {
  const changed = Buffer.from(signature);
  changed.writeUInt8(1, changed.length - 5);
  return changed;
};

test('a login takes the signature of the key itself, touched, for SSH, as it was made', async () => {
  await using service = await startTestApp({
    gateway: { securityKeys: true },
    gatewayLimits: { backoffAfterFailures: 1000 },
  });
  const key = newSecurityKey();
  assert.equal((await register(service, 'ada', key)).status, 201);
  const { body: me } = await service.business('/me', { as: 'ada' });
  const path = `/clusters/${alpha}/ssh-access?organizationId=${me.memberships[0].org_id}`;
  await becomes(async () => (await service.platform(path, { as: 'ada' })).body.ready === true, true);
  assert.deepEqual(await logIn(service, key), [SSH.USERAUTH_SUCCESS, '']);
  const wrong: [string, Tampering][] = [
    ['a touch that was not', { said: { flags: 0 }, spoil: touched }],
    ['another application', { said: { application: 'ssh:other' } }],
    ['an algorithm of browsers', { algorithm: 'webauthn-sk-ecdsa-sha2-nistp256@openssh.com' }],
    ['a signature of browsers', { said: { type: 'webauthn-sk-ecdsa-sha2-nistp256@openssh.com' } }],
    ['a plain algorithm', { algorithm: 'ssh-ed25519' }],
    ['a certificate', { algorithm: 'sk-ssh-ed25519-cert-v01@openssh.com' }],
  ];
  for (const [what, tampering] of wrong)
    assert.deepEqual(await logIn(service, key, tampering), [SSH.USERAUTH_FAILURE, ''], what);
  const [answer, text] = await logIn(service, key, { said: { flags: 0 } });
  assert.equal(answer, SSH.USERAUTH_FAILURE);
  assert.match(text, /signed without a touch/);

  // Not through the API, as an older version or a restored database could have it.
  const site = newSecurityKey('https://lab.example');
  assert.match((await register(service, 'ada', site)).body.error, /does not begin with “ssh:”/);
  const [, encoded = ''] = site.publicKey.split(' ');
  const fingerprint = sshFingerprint(Buffer.from(encoded, 'base64'));
  await service.elsewhere(
    `update ssh_keys set public_material = '${site.publicKey}', fingerprint = '${fingerprint}'`,
  );
  assert.deepEqual(await logIn(service, site), [SSH.USERAUTH_FAILURE, '']);
});
