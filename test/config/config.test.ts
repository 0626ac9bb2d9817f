import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { permissionCatalog } from '../../src/domain/access/permission.ts';
import { readClusters } from '../../src/service/config/clusters.ts';
import { demoConfig, listConfigFiles, readConfig } from '../../src/service/config/index.ts';
import { readLab } from '../../src/service/config/lab-file.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';

const directory = temporaryDirectory();
after(() => directory[Symbol.dispose]());
const file = join(directory.path, 'andromeda.yaml');
const read = (text: string) => {
  writeFileSync(file, text);
  return readConfig(file);
};
writeFileSync(join(directory.path, 'cert.pem'), 'certificate');
writeFileSync(join(directory.path, 'key.pem'), 'key');
mkdirSync(join(directory.path, 'folder'));

/** As design.md gives it. */
const example = `
dataDir: ./data
platform: { listen: "127.0.0.1:8080", url: "http://127.0.0.1:8080" }
business: { listen: "127.0.0.1:8081", url: "http://127.0.0.1:8081" }
gateway:  { listen: "127.0.0.1:2222", hostname: "127.0.0.1", port: 2222 }   # port as ssh-access reports it
identity:
  issuer: "https://login.example.org"
  audiences: ["andromeda"]
  cliClientId: "andromeda-cli"
  kubernetes: { clientId: "andromeda-kubernetes", usernameClaim: email }
  embedded: { listen: "127.0.0.1:8082", url: "http://127.0.0.1:8082" }
sync: { intervalSeconds: 15 }
seed: ./lab.yaml
`;

test('the example of the design is accepted as it stands', () => {
  const config = read(example);
  assert.equal(config.dataDir, join(directory.path, 'data'));
  assert.equal(config.seed, join(directory.path, 'lab.yaml'));
  assert.equal(config.identity.issuer, 'https://login.example.org');
  assert.deepEqual(config.identity.kubernetes, { clientId: 'andromeda-kubernetes', usernameClaim: 'email' });
  assert.deepEqual(config.gateway, {
    listen: { host: '127.0.0.1', port: 2222 },
    hostname: '127.0.0.1',
    port: 2222,
    processes: 1,
    limits: {},
    securityKeys: false,
  });
});

test('where the configuration stands among other secrets, labs may name no files unless it says where', () => {
  const options = { dataDir: '/var/lib/andromeda', own: [] };
  for (const file of ['/andromeda.yaml', '/etc/andromeda.yaml', '/root/a.yaml', join(homedir(), 'a.yaml')]) {
    assert.equal(readClusters({}, { ...options, file }).secrets.directory, undefined, file);
    const said = readClusters({ secretsDir: '/etc/lab' }, { ...options, file });
    assert.equal(said.secrets.directory, '/etc/lab');
  }
  const usual = readClusters({}, { ...options, file: '/etc/andromeda/andromeda.yaml' });
  assert.equal(usual.secrets.directory, '/etc/andromeda');
});

test('settings that are all left out have every default: everything on loopback, the embedded issuer', () => {
  const config = read('{}');
  const http = (port: number) => ({
    listen: { host: '127.0.0.1', port },
    url: `http://127.0.0.1:${port}`,
    tls: undefined,
  });
  assert.deepEqual(config, {
    demo: false,
    files: [file],
    dataDir: join(directory.path, 'data'),
    database: undefined,
    secrets: undefined,
    server: { name: hostname(), drainMs: 10_000 },
    platform: http(8080),
    business: http(8081),
    gateway: {
      listen: { host: '127.0.0.1', port: 2222 },
      hostname: '127.0.0.1',
      port: 22,
      processes: 1,
      limits: {},
      securityKeys: false,
    },
    identity: {
      issuer: undefined,
      ca: undefined,
      resourceParameter: 'auto',
      trustEmail: [],
      audiences: ['andromeda'],
      cliClientId: 'andromeda-cli',
      scopes: undefined,
      secondFactor: 'none',
      kubernetes: undefined,
      serviceAccountClaim: undefined,
      groups: undefined,
      console: undefined,
      embedded: http(8082),
    },
    acme: undefined,
    access: {},
    retention: {},
    trustedProxies: [],
    http: { connectionsPerSource: 512, connections: 8192 },
    sync: { intervalMs: 15_000 },
    clusters: {
      secrets: {
        directory: directory.path,
        never: [join(directory.path, 'data'), join(directory.path, 'andromeda.yaml')],
      },
      allowLocal: [],
      allowSimulated: false,
      unsafeSimulatedLogins: false,
    },
    uids: { base: 20_000 },
    log: { level: 'info' },
    audit: { signMs: 60_000, file: undefined, group: undefined },
    backup: undefined,
    metrics: undefined,
    console: undefined,
    seed: undefined,
  });
  assert.ok(Object.isFrozen(config));
});

test('security keys are accepted, and required of the staff, where the settings say so', () => {
  const settings = (text: string) => {
    const { gateway, access } = read(`gateway: { ${text} }`);
    return [gateway.securityKeys, access];
  };
  assert.deepEqual(settings('requireSecurityKeys: none'), [false, {}]);
  assert.deepEqual(settings('securityKeys: true'), [true, { securityKeys: true }]);
  assert.deepEqual(settings('securityKeys: true, requireSecurityKeys: staff'), [
    true,
    { securityKeys: true, requireSecurityKeys: 'staff' },
  ]);
});

test('trustedProxies are addresses and networks', () => {
  assert.deepEqual(read('trustedProxies: ["127.0.0.1", "10.0.0.0/8", "::1"]').trustedProxies, [
    '127.0.0.1',
    '10.0.0.0/8',
    '::1',
  ]);
  for (const wrong of [
    '10.0.0.0/33',
    '10.0.0/8',
    '::1/129',
    '0.0.0.0/0',
    'proxy.example',
    '10.0.0.0/8/8',
    'fe80::1%eth0',
  ]) {
    assert.throws(
      () => read(`trustedProxies: ["${wrong}"]`),
      new RegExp(`trustedProxies: "${wrong}" is not an address or a network`),
    );
  }
});

test('audit says which file the trail is copied to, and which group of this host may read it', () => {
  const { audit } = read('audit: { signSeconds: 5, file: trail.jsonl, group: daemon }');
  const [, , id] = /^daemon:.*$/m.exec(readFileSync('/etc/group', 'utf8'))?.[0].split(':') ?? [];
  assert.deepEqual(audit, { signMs: 5_000, file: join(directory.path, 'trail.jsonl'), group: Number(id) });
  assert.throws(
    () => read('audit: { file: x, group: no-such }'),
    /audit\.group: this host has no group no-such/,
  );
  assert.throws(() => read('audit: { group: daemon }'), /audit.*file/);
});

test('backup says how often, how many, where, and what runs after each', () => {
  assert.deepEqual(read('backup: { to: /srv/backups }').backup, {
    everyMs: 86_400_000,
    keep: 14,
    to: '/srv/backups',
    after: undefined,
  });
  const { backup } = read('backup: { every: 90m, keep: 3, to: b, after: "rclone copy \\"$1\\" far:" }');
  const to = join(directory.path, 'b');
  assert.deepEqual(backup, { everyMs: 5_400_000, keep: 3, to, after: 'rclone copy "$1" far:' });
  const rows: [string, RegExp][] = [
    ['{}', /backup lacks to/],
    ['{ to: /srv, every: 1w }', /backup\.every must be a number and m, h or d, as 24h\.$/],
    ['{ to: /srv, every: 24 }', /backup\.every must be a number and m, h or d, as 24h\.$/],
    [
      '{ to: "s3://a:secret@x/y" }',
      /backup\.to is "s3:\/\/…@x\/y"; it must be a directory\. backup\.after can/,
    ],
    ['{ to: /srv, keep: 0 }', /backup\.keep must be >= 1/],
    ['{ to: ./data/backups }', /is lost with the data directory/],
    ['{ to: /srv, after: "" }', /backup\.after must NOT have fewer than 1 char/],
  ];
  for (const [text, message] of rows) assert.throws(() => read(`backup: ${text}`), message, text);
});

test('no error repeats what can be a secret: passwords and queries of addresses', () => {
  assert.throws(
    () => read('platform: { url: "https://u:SECRET@c/?SECRET" }'),
    (error: Error) =>
      /"https:\/\/…@c\/\?…", which is not/.test(error.message) && !/SECRET/.test(error.message),
  );
});

test('a copy of the trail is not written between the service’s own files', () => {
  symlinkSync(join(directory.path, 'data'), join(directory.path, 'way'));
  for (const place of ['./data/andromeda.db', './data', './data/x/y']) {
    assert.throws(() => read(`audit: { file: ${place} }`), /audit\.file is .* within the data directory/);
  }
  mkdirSync(join(directory.path, 'data'));
  assert.throws(() => read('audit: { file: ./way/andromeda.db }'), /within the data directory/);
  // It is the one place that the unit of before could write to.
  assert.ok(read('audit: { file: ./data/audit.jsonl }'));
  writeFileSync(join(directory.path, 'data/andromeda.db'), '');
  symlinkSync('andromeda.db', join(directory.path, 'data/audit.jsonl'));
  assert.throws(() => read('audit: { file: ./data/audit.jsonl }'), /ends in \.jsonl or \.log/);
  rmSync(join(directory.path, 'data'), { recursive: true });
});

test('gateway.limits are read in words for people, and given in the gateway’s own', () => {
  const same = {
    loginAttempts: 3,
    unauthenticated: 100,
    unauthenticatedPerSource: 50,
    sessionsPerUser: 10,
    sessionsPerSource: 20,
    channelsPerConnection: 30,
    backoffAfterFailures: 5,
  };
  const seconds = { loginGrace: 20, idle: 3600, recheck: 2, confirmGrace: 60, unconfirmed: 20, drain: 1.5 };
  const renamed = (unit: string, factor: number) =>
    Object.fromEntries(Object.entries(seconds).map(([name, value]) => [name + unit, value * factor]));
  const limits = { ...same, ...renamed('Seconds', 1) };
  const given = read(JSON.stringify({ gateway: { limits } })).gateway.limits;
  assert.deepEqual(given, { ...same, ...renamed('Ms', 1000) });
  for (const [text, message] of [
    ['idleMinutes: 1', /idleMinutes is not a setting/],
    ['unauthenticated: "10:30:100"', /must be an integer/],
    ['loginAttempts: 0', /must be >= 1/],
  ] as const) {
    assert.throws(() => read(`gateway: { limits: { ${text} } }`), message);
  }
});

function withRule(rule: string): string {
  return `identity: { issuer: "https://login.example.org", groups: { claim: groups, rules: [${rule}] } }`;
}

test('the demonstration listens on loopback only, and its gateway says the port it has', () => {
  const config = demoConfig('./somewhere');
  for (const { listen } of [config.platform, config.business, config.gateway, config.identity.embedded]) {
    assert.equal(listen.host, '127.0.0.1');
  }
  assert.equal(config.gateway.port, config.gateway.listen.port);
});

test('the demonstration may have simulated login nodes as root, which a service with a file may only where that says so', () => {
  assert.equal(demoConfig('./somewhere').clusters.allowSimulated, true);
  assert.equal(read('{}').clusters.allowSimulated, false);
  assert.equal(read('clusters: { allowSimulated: true }').clusters.allowSimulated, true);
});

test('identity.groups says the claim, and what rules give for groups', () => {
  const { groups } = read(
    withRule('{ group: a, organization: b, permissions: [clusters.ssh, clusters.read] }'),
  ).identity;
  const permissions = ['clusters.read', 'clusters.ssh'];
  const rules = [{ group: 'a', organization: 'b', role: 'member', permissions }];
  const issuer = 'https://login.example.org';
  assert.deepEqual(groups, { source: { issuer, claim: 'groups' }, rules });
  const noted = read('identity: { issuer: "https://login.example.org", groups: { claim: roles } }').identity;
  assert.deepEqual(noted.groups, { source: { issuer, claim: 'roles' }, rules: [] });
});

const tls = 'tls: { cert: cert.pem, key: key.pem }';
const accepted: [string, string][] = [
  [`platform: { listen: "10.0.0.5:8443", ${tls} }`, 'https://10.0.0.5:8443'],
  [
    'platform: { listen: "10.0.0.5:8080", behindProxy: true, url: "https://x.example/" }',
    'https://x.example',
  ],
  ['platform: { url: "https://x.example/platform/" }', 'https://x.example/platform'],
  ['platform: { listen: "[::1]:8080" }', 'http://[::1]:8080'],
  ['platform: { listen: "localhost:8080" }', 'http://localhost:8080'],
  [`platform: { listen: "0.0.0.0:443", ${tls}, url: "https://x.example" }`, 'https://x.example'],
];
for (const [text, url] of accepted) {
  test(`accepted: ${text}`, () => assert.equal(read(text).platform.url, url));
}

test('what TLS needs is read from the files, which are relative to the configuration', () => {
  const { tls: given } = read(`platform: { ${tls} }`).platform;
  assert.equal(given && 'cert' in given && given.cert.toString(), 'certificate');
});

const notLoopback = (name: string, host: string) =>
  `${name}.listen is ${host}, which is not loopback, and there is no TLS. Give ${name}.tls, or set ${name}.behindProxy: true where a proxy in front does TLS.`;
const both = (name: string, port: number) =>
  `platform.listen and ${name}.listen are both 127.0.0.1:${port}; each needs its own port.`;
const noAddress = (setting: string, given: string) =>
  `${setting} is "${given}"; it must be a host and a port, such as 127.0.0.1:8080.`;
const everyAddress = (setting: string, given: string, other: string) =>
  `${setting} is ${given}, which is every address of this machine. Give ${other}, the`;
const elsewhere = 'issuer: "https://login.example.org"';
/** What is refused, and how the sentence begins. */
const refused: [string, string][] = [
  ['plattform: {}', 'plattform is not a setting; did you mean platform?'],
  ['gateway: { adress: x }', 'gateway.adress is not a setting; known here: listen, hostname, port, '],
  ['- a', 'the file must be an object.'],
  ['gateway: { requireSecurityKeys: staff }', 'gateway.requireSecurityKeys is staff, and security keys are '],
  ['gateway: { requireSecurityKeys: all }', 'gateway.requireSecurityKeys must be one of none, staff.'],
  ['access: { keyMaxDays: 0 }', 'access.keyMaxDays must be 1 to 36500 whole days, such as 30 or 30d.'],
  ['console: { url: "https://lab.example/console" }', 'console.url is https://lab.example/console; give an '],
  [`console: {}\nidentity: { ${elsewhere} }`, 'console: register the console at https://login.example.org ('],
  ['log: { level: loud }', 'log.level must be one of debug, info, warn, error.'],
  ['identity: { ca: cert.pem }', 'identity.ca: cert.pem holds no certificate in PEM.'],
  [
    'identity: { issuer: login.example }',
    'identity.issuer is "login.example", which is not of the right form.',
  ],
  ['identity: { issuer: "http://x.example" }', 'identity.issuer is http://x.example, which is plain http. '],
  ['sync: { intervalSeconds: 0 }', 'sync.intervalSeconds must be 0.1 to 60 seconds, such as 30 or 30s.'],
  ['platform: { listen: localhost }', noAddress('platform.listen', 'localhost')],
  ['gateway: { listen: "127.0.0.1:99999" }', noAddress('gateway.listen', '127.0.0.1:99999')],
  ['platform: { listen: "::1:8080" }', noAddress('platform.listen', '::1:8080')],
  ['platform: { listen: "10.0.0.5:8080" }', notLoopback('platform', '10.0.0.5')],
  ['business: { listen: "0.0.0.0:8081" }', notLoopback('business', '0.0.0.0')],
  ['identity: { embedded: { listen: "10.0.0.5:8082" } }', notLoopback('identity.embedded', '10.0.0.5')],
  ['platform: { listen: "127.example.org:8080" }', notLoopback('platform', '127.example.org')],
  ['business: { listen: "127.0.0.1:8080" }', both('business', 8080)],
  ['platform: { listen: "127.0.0.1:8082" }', both('identity.embedded', 8082)],
  ...['0.0.0.0', '[::ffff:0.0.0.0]'].map((host): [string, string] => [
    `platform: { listen: "${host}:443", ${tls} }`,
    everyAddress('platform.listen', host.replaceAll(/[[\]]/g, ''), 'platform.url'),
  ]),
  ['gateway: { listen: "0.0.0.0:22" }', everyAddress('gateway.listen', '0.0.0.0', 'gateway.hostname')],
  ['identity: { audiences: [a, b] }', 'identity.audiences: the embedded issuer puts one audience into a '],
  ['identity: { groups: { claim: groups } }', 'identity.groups: the built-in issuer knows no groups. Give '],
  [`identity: { ${elsewhere}, groups: { rules: [] } }`, 'identity.groups lacks claim.'],
  [
    withRule('{ group: a, organization: b, permissions: [clusters.shh] }'),
    `identity.groups.rules[0].permissions[0] must be one of ${permissionCatalog.map(({ key }) => key).join(', ')}.`,
  ],
  [
    withRule('{ group: a, organization: b, role: boss }'),
    'identity.groups.rules[0].role must be one of member, admin, owner.',
  ],
  [withRule('{ group: a }'), 'identity.groups.rules[0] lacks organization.'],
  [
    withRule('{ group: a, organization: b, role: admin, permissions: [clusters.ssh] }'),
    'identity.groups.rules[0]: an admin holds every permission; leave permissions out.',
  ],
  ['gateway: { processes: 0, account: nobody }', 'gateway.account is for the gateway’s own processes, and '],
];
for (const [text, sentence] of refused) {
  test(`refused: ${text}`, () => {
    const isSaid = ({ message }: Error) => message.startsWith(`${file}:1: ${sentence}`);
    assert.throws(() => read(text), isSaid);
  });
}

test('refused: a TLS file that cannot be read', () => {
  const message = `${file}:1: platform.tls.cert: cannot read ${join(directory.path, 'none.pem')}: there is no such file.`;
  assert.throws(() => read('platform: { tls: { cert: none.pem, key: key.pem } }'), { message });
});

test('several faults are a line each, with the line of the file, in its order', () => {
  const text = `# A comment first.
gateway:
  port: 0
  adress: x
identity: { audiences: [a, 1] }
business: &same { tls: { cert: c } }
metrics: *same
platfrom: {}
`;
  const known =
    'listen, hostname, port, processes, account, limits, proxyProtocol, securityKeys, requireSecurityKeys';
  const lines = [
    '3: gateway.port must be >= 1.',
    `4: gateway.adress is not a setting; known here: ${known}.`,
    '5: identity.audiences[1] must be a string.',
    '6: business.tls lacks key.',
    '6: metrics.tls lacks key.',
    '8: platfrom is not a setting; did you mean platform?',
  ];
  assert.throws(() => read(text), { message: lines.map((line) => `${file}:${line}`).join('\n') });
});

test('an empty file is a fault, and {} is every default', () => {
  for (const text of ['', '\n', '# Only a comment.\n'])
    assert.throws(() => read(text), {
      message: `${file} has nothing in it; for every default, write {} into it.`,
    });
  assert.equal(read('{}').sync.intervalMs, 15_000);
});

test('a duration is a number of its setting’s unit, or a text with a unit', () => {
  const config = read(`
server: { drainSeconds: 20s }
sync: { intervalSeconds: 1m }
access: { maxHoursWithoutSignIn: 2w, endOpenSessions: true, keyMaxDays: 730d, reviewMonths: 6 }
retention: { commands: 168h, sessions: 180, audit: 730d }
audit: { signSeconds: 5m }
gateway: { limits: { idleSeconds: 8h, recheckSeconds: 2s } }
`);
  assert.equal(config.server.drainMs, 20_000);
  assert.equal(config.sync.intervalMs, 60_000);
  assert.deepEqual(config.access, {
    ...{ maxHoursWithoutSignIn: 336, endOpenSessions: true, keyMaxDays: 730, reviewMonths: 6 },
  });
  for (const months of ['0', '37', '1.5', '6M'])
    assert.throws(() => read(`access: { reviewMonths: ${months} }`), /access\.reviewMonths must be/);
  assert.deepEqual(config.retention, { commands: 7, sessions: 180, audit: 730 });
  assert.equal(config.audit.signMs, 300_000);
  assert.deepEqual(config.gateway.limits, { idleMs: 28_800_000, recheckMs: 2_000 });
  const wrong = ['36h', '0d', '730 d', 'forever', '1.5', 'null', '[30]', '40000d', 'true', '30M'];
  for (const text of wrong)
    assert.throws(() => read(`access: { keyMaxDays: ${text} }`), /keyMaxDays must be 1 to 36500 whole days/);
});

const unreadable: [string, RegExp][] = [
  ['platform: {\nbusiness: [\n', /:\d+:\d+: not readable as YAML: /],
  ['dataDir: a\ndataDir: b\n', /andromeda\.yaml:2:1: not readable as YAML: Map keys must be unique/],
  ['platform:\n\tlisten: x\n', /andromeda\.yaml:2:1: not readable as YAML: /],
  ['dataDir: a\n---\ndataDir: b\n', /andromeda\.yaml:2:1: a second document begins here \(---\)/],
  ['dataDir: a\nbusiness:\n  url: "a\\0b"\n', /andromeda\.yaml:3: this text has a NUL character/],
  ['dataDir: "a\\ud83d"\n', /andromeda\.yaml:1: this text has .* half of a surrogate/],
  ['dataDir: *a\n', /not readable as YAML: Unresolved alias/],
];
for (const [text, message] of unreadable) {
  test(`refused with the line: ${JSON.stringify(text)}`, () => {
    assert.throws(() => read(text), { code: 'invalid_request', message });
  });
}

test('refused: a file that is not there, and a directory', () => {
  const none = join(directory.path, 'none.yaml');
  assert.throws(() => readConfig(none), { message: `Cannot read ${none}: there is no such file.` });
  const folder = join(directory.path, 'folder');
  assert.throws(() => readConfig(folder), { message: `Cannot read ${folder}: it is a directory.` });
});

const labs: [string, string, number?][] = [
  [
    'organizations: [{ slug: x, name: X, member: [] }]',
    'organizations[0].member is not a setting; did you mean members?',
  ],
  ['clusters: [{ name: a }]', 'clusters[0] lacks organization.'],
  ['users: [{ email: ada }]', 'users[0].email is "ada", which is not of the right form.'],
  ['organizations: [{ slug: x, name: X }]', 'Organization x needs an owner.'],
  [
    'clusters:\n- name: a\n  simulated: { computeNodes: 1, gpusPerNode: 1 }\n  organization: here',
    'Cluster a names the organization here, which does not exist.',
    4,
  ],
  [
    `organizations:
- slug: x
  name: X
  members:
  - { email: ada@x.example, role: owner }
  - email: Ada@x.example
    role: member`,
    'The member of x ada@x.example is there twice.',
    6,
  ],
  [
    'organizations: []\nclusters:\n- name: a\n  organization: x\n  kubernetes: {}',
    'Cluster a: its kubernetes section needs a kubeconfig or a server.',
    3,
  ],
];
for (const [text, sentence, line = 1] of labs) {
  test(`a lab file is refused with its name and place: ${sentence}`, () => {
    const lab = join(directory.path, 'lab.yaml');
    writeFileSync(lab, text);
    assert.throws(() => readLab(lab), { code: 'invalid_request', message: `${lab}:${line}: ${sentence}` });
  });
}

test('audit.group is any group that the host knows, from a directory too', () => {
  const getent = join(directory.path, 'getent');
  const answer = '[ "$*" = "group auditors" ] && echo "auditors:*:4242:ada"';
  writeFileSync(getent, `#!/bin/sh\n${answer} || exit 2\n`, { mode: 0o755 });
  const { PATH } = process.env;
  process.env['PATH'] = `${directory.path}:${PATH}`;
  try {
    assert.equal(read('audit: { file: ./audit.jsonl, group: auditors }').audit.group, 4242);
    assert.throws(() => read('audit: { file: ./audit.jsonl, group: auditor }'), {
      message: /audit\.group: this host has no group auditor\. groupadd --system auditor$/,
    });
  } finally {
    process.env['PATH'] = PATH;
  }
});

test('every file that a setting names belongs to the configuration, the authority of an issuer too', () => {
  const { ca } = createAuthority();
  writeFileSync(join(directory.path, 'ca.pem'), ca);
  const config = read('identity: { ca: ca.pem }\nplatform: { tls: { cert: cert.pem, key: key.pem } }');
  assert.equal(config.identity.ca, ca);
  const named = [file, ...['ca.pem', 'cert.pem', 'key.pem'].map((name) => join(directory.path, name))];
  assert.deepEqual(new Set(config.files), new Set(named));
  assert.deepEqual(listConfigFiles(file), config.files);
});
