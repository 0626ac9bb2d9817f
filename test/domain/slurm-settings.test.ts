import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkSlurmSettings, type SlurmSettings } from '../../src/domain/slurm/settings.ts';

const hostKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKk5';
const twoLines = `${hostKey}\n* ${hostKey}`;
const whole: SlurmSettings = {
  login: [{ name: 'login1', host: '10.0.0.5', hostKey }],
  controller: { host: 'head.lab', port: 2222, hostKey },
  compute: { host: '{name}.lab' },
  manage: { identityFile: '/keys/manage' },
};
const login = (host: string) => [{ name: 'login1', host, hostKey }];

test('a whole section is taken, and one on this machine needs no key', () => {
  checkSlurmSettings('beta', whole);
  checkSlurmSettings('beta', { ...whole, loginMode: 'PerUser', login: login('login-{username}.lab') });
  const here = {
    login: [{ name: 'head', host: '10.0.0.5', hostKey, local: true }],
    controller: { local: true },
  };
  checkSlurmSettings('beta', here);
});

for (const [what, changes, words] of [
  [
    'a login node for everyone cannot have {username} in its host',
    { login: login('{username}.lab') },
    /needs loginMode: PerUser/,
  ],
  ["a person's own needs it", { loginMode: 'PerUser' }, /needs \{username\} in it/],
  ['two login nodes of one name', { login: [...login('a'), ...login('b')] }, /the same name/],
  ['a host that is an option', { controller: { host: '-oProxyCommand=id', hostKey } }, /no name or addr/],
  ['a host with a space', { controller: { host: 'a b', hostKey } }, /no name or address/],
  ['a host key that is none', { controller: { host: 'a', hostKey: 'AAAA' } }, /not a public key/],
  ['a host key of two lines', { controller: { host: 'a', hostKey: twoLines } }, /not a public key/],
  ['a controller without host key', { controller: { host: 'a' } }, /the controller needs its hostKey/],
  ['a controller without host', { controller: {} }, /needs a host, or local: true/],
  ['no management key', { manage: {} }, /needs manage\.identityFile/],
  ['a relative slurm.conf', { configFile: 'slurm.conf' }, /absolute path/],
] as const) {
  test(`refused in words: ${what}`, () => {
    assert.throws(() => checkSlurmSettings('beta', { ...whole, ...changes } as SlurmSettings), {
      code: 'invalid_request',
      message: words,
    });
  });
}
