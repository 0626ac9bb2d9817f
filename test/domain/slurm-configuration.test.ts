import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  changedFields,
  checkSlurmConfiguration,
  type SlurmConfiguration,
  withoutEmptyFields,
} from '../../src/domain/slurm/configuration.ts';
import { checkSlurmSettings, type SlurmSettings } from '../../src/domain/slurm/settings.ts';

const KiB = 1024;
const script = (bytes: number) => `#!${'x'.repeat(bytes - 2)}`;
const files = (count: number, bytes: number, name = 'f') =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${name}${i}`, script(bytes)]));
const parsed = (text: string) => JSON.parse(text) as Record<string, string>;

const lawful: [string, SlurmConfiguration][] = [
  ['nothing at all', {}],
  ['empty maps', { prolog: {}, epilog: {}, controllerEtc: {} }],
  ['scripts that are nothing but #!', { prolog: { a: '#!' }, epilog: { a: '#!' } }],
  ['a controller file without #!', { controllerEtc: { 'topology.conf': '' } }],
  ['every character a file name may have', { controllerEtc: { 'AZaz09-_.': 'x' } }],
  ['a name of 255 characters', { controllerEtc: { ['n'.repeat(255)]: 'x' } }],
  ['names that only look reserved', { controllerEtc: { 'Slurm.conf': '', 'slurm.conf.d': '' } }],
  ['slurm.conf as the name of a script', { prolog: { 'slurm.conf': '#!/bin/sh' } }],
  ['a name that objects have', { prolog: parsed('{"__proto__":"#!/bin/sh","constructor":"#!"}') }],
  ['a file of exactly 64 KiB', { controllerEtc: { a: 'x'.repeat(64 * KiB) } }],
  ['a file of exactly 64 KiB in UTF-8', { controllerEtc: { a: 'é'.repeat(32 * KiB) } }],
  ['scripts of exactly 64 KiB', { prolog: files(1, 64 * KiB), epilog: files(1, 64 * KiB) }],
  [
    'exactly 256 KiB together',
    { prolog: files(2, 64 * KiB), epilog: files(1, 64 * KiB), controllerEtc: files(1, 64 * KiB) },
  ],
  [
    'any size and any nonsense in the fields that are not validated',
    {
      ...{ slurmPartitions: 'x'.repeat(300 * KiB), slurmExtraConfig: 'NotASetting', gresConf: '' },
      ...{ cgroupExtraConfig: '\0', loginS6Packages: 'no #!', computeS6Packages: 'x'.repeat(65 * KiB) },
    },
  ],
];
for (const [what, configuration] of lawful) {
  test(`taken: ${what}`, () => checkSlurmConfiguration(configuration));
}

const refused: [string, SlurmConfiguration, RegExp][] = [
  ['prolog scripts start with #!', { prolog: { 'p.sh': 'echo' } }, /prolog file "p\.sh".*"#!"/],
  ['epilog scripts start with #!', { epilog: { 'e.sh': ' #!/bin/sh' } }, /epilog file "e\.sh".*"#!"/],
  ['an empty script does not start with #!', { epilog: { 'e.sh': '' } }, /epilog file "e\.sh"/],
  ['a byte order mark comes before #!', { prolog: { a: '\uFEFF#!/bin/sh' } }, /prolog file "a"/],
  ['the second script counts too', { prolog: { a: '#!', b: 'x' } }, /prolog file "b"/],
  ...['a/b', 'a b', '', 'ä', 'a\n', '\0', 'a\\b', 'a:b', '..\u2044x'].flatMap((name) =>
    (['prolog', 'epilog', 'controllerEtc'] as const).map((field): [string, SlurmConfiguration, RegExp] => [
      `${field} file names contain only letters, digits, -, _ and .: ${JSON.stringify(name)}`,
      { [field]: { [name]: '#!' } },
      new RegExp(`${field} file.*letters, digits`),
    ]),
  ),
  ['. is no file', { controllerEtc: { '.': '' } }, /controllerEtc file "\."/],
  ['.. is no file', { prolog: { '..': '#!' } }, /prolog file "\.\."/],
  ['no file has a name of 256 characters', { epilog: { ['n'.repeat(256)]: '#!' } }, /epilog file "n+"/],
  ...['slurm.conf', 'cgroup.conf', 'gres.conf', 'plugstack.conf'].map(
    (name): [string, SlurmConfiguration, RegExp] => [
      `controllerEtc does not contain ${name}`,
      { controllerEtc: { 'ok.conf': '', [name]: '' } },
      new RegExp(`controllerEtc file "${name.replace('.', '\\.')}"`),
    ],
  ),
  ...(['prolog', 'epilog', 'controllerEtc'] as const).map((field): [string, SlurmConfiguration, RegExp] => [
    `a ${field} file is at most 64 KiB`,
    { [field]: { big: script(64 * KiB + 1) } },
    new RegExp(`${field} file "big" is 65537 bytes.*64 KiB`),
  ]),
  [
    'sizes are bytes of UTF-8, not characters',
    { controllerEtc: { a: `${'é'.repeat(32 * KiB)}x` } },
    /controllerEtc file "a" is 65537 bytes/,
  ],
  [
    'prolog, epilog and controllerEtc together are at most 256 KiB',
    { prolog: files(2, 64 * KiB), epilog: files(2, 64 * KiB), controllerEtc: { one: 'x' } },
    /together are 262145 bytes.*256 KiB/,
  ],
];
for (const [what, configuration, message] of refused) {
  test(`400 invalid_scheduler_config: ${what}`, () => {
    assert.throws(() => checkSlurmConfiguration(configuration), {
      name: 'DomainError',
      code: 'invalid_scheduler_config',
      message,
    });
  });
}

test('the fields that changed are named; the order of files and fields means nothing', () => {
  const before = { slurmExtraConfig: 'a', prolog: { a: '#!', b: '#!b' } };
  assert.deepEqual(changedFields(before, { prolog: { b: '#!b', a: '#!' }, slurmExtraConfig: 'a' }), []);
  assert.deepEqual(changedFields({}, {}), []);
  assert.deepEqual(changedFields(before, {}), ['prolog', 'slurmExtraConfig']);
  assert.deepEqual(changedFields({}, { gresConf: '' }), ['gresConf']);
  assert.deepEqual(changedFields({}, { prolog: {} }), ['prolog']);
  assert.deepEqual(changedFields(before, { ...before, prolog: { a: '#!', b: '#!c' } }), ['prolog']);
  assert.deepEqual(changedFields(before, { ...before, prolog: { a: '#!' } }), ['prolog']);
  assert.deepEqual(changedFields({ prolog: parsed('{"__proto__":"#!"}') }, { prolog: {} }), ['prolog']);
});

test('a field that names no file is as if it were left out; an empty text is not', () => {
  const files = { prolog: {}, epilog: { a: '#!' }, controllerEtc: {} };
  assert.deepEqual(withoutEmptyFields({ ...files, slurmExtraConfig: '' }), {
    epilog: { a: '#!' },
    slurmExtraConfig: '',
  });
  const odd = withoutEmptyFields({ prolog: parsed('{"__proto__":"#!/bin/sh"}') });
  assert.equal(JSON.stringify(odd), '{"prolog":{"__proto__":"#!/bin/sh"}}');
});

const hostKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKk5';
const twoLines = `${hostKey}\n* ${hostKey}`;
const whole: SlurmSettings = {
  login: [{ name: 'login1', host: '10.0.0.5', hostKey }],
  controller: { host: 'head.lab', port: 2222, hostKey },
  compute: { host: '{name}.lab' },
  manage: { identityFile: '/keys/manage' },
};
const inner = { name: 'inner', host: '10.0.0.6', hostKey, via: 'login1' };
const login = (host: string) => [{ name: 'login1', host, hostKey }];

test('a whole section is taken, and one on this machine needs no key', () => {
  checkSlurmSettings('beta', whole);
  checkSlurmSettings('beta', { ...whole, loginMode: 'PerUser', login: login('login-{username}.lab') });
  const here = {
    login: [{ name: 'head', host: '10.0.0.5', hostKey, local: true }],
    controller: { local: true },
  };
  checkSlurmSettings('beta', here);
  const via = { host: 'bastion', hostKey };
  checkSlurmSettings('beta', {
    ...here,
    compute: { host: '{name}', via: 'controller' },
    manage: { identityFile: '/k' },
  });
  checkSlurmSettings('beta', {
    ...whole,
    login: [...login('a'), { ...inner, accounts: 'directory' }],
    controller: { ...whole.controller, via },
    accounting: { host: inner.host, hostKey, via: 'login1' },
  });
});

const behind = (via: unknown) => ({ compute: { host: '{name}', via } });
const twoBehind = ['login1', 'login2'].map((name, index) => {
  const via = index === 0 ? 'login2' : 'login1';
  return { name, host: name, hostKey, via };
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
  [
    'a via that names no host',
    behind('gate'),
    /the compute has the via gate, which is neither controller nor/,
  ],
  ['a via that leads back', { login: twoBehind }, /login node login1 has a via that leads back to login1\./],
  [
    'a host that is its own via',
    { controller: { ...whole.controller, via: 'controller' } },
    /leads back to head/,
  ],
  ['a via on this machine', { controller: { local: true, via: 'login1' } }, /the machine of the service/],
  ['a via without a host key', behind({ host: 'gate' }), /the hop before the compute needs its hostKey/],
  [
    'a via that is an option',
    behind({ host: '-o', hostKey }),
    /the hop before the compute has the host "-o"/,
  ],
  ['a via that is many hosts', behind({ host: '{name}', hostKey }), /whose host, \{name\}, is several hosts/],
  [
    'one address behind two hops',
    { login: [...login('a'), { ...inner, via: 'login1' }], accounting: { ...inner, via: 'controller' } },
    /the login node inner and the accounting are the same host, which cannot be reached in two ways/,
  ],
  [
    'accounts of two kinds on one host',
    {
      login: [{ name: 'inner', ...whole.controller, accounts: 'directory' }],
      controller: { ...whole.controller, accounts: 'files' },
    },
    /the login node inner and the controller are the same host, whose accounts cannot be directory and files/,
  ],
  ['a relative slurm.conf', { configFile: 'slurm.conf' }, /absolute path/],
] as const) {
  test(`refused in words: ${what}`, () => {
    assert.throws(() => checkSlurmSettings('beta', { ...whole, ...changes } as SlurmSettings), {
      code: 'invalid_request',
      message: words,
    });
  });
}
