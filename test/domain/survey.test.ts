import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkLab, type Lab } from '../../src/domain/clusters/lab.ts';
import { mergeSurvey } from '../../src/domain/slurm/survey.ts';
import { readLine } from '../../src/domain/slurm/survey-keys.ts';
import { labOfSurvey, readPeople } from '../../src/domain/slurm/survey-lab.ts';
import type { SurveyedAccount, SurveyedHost } from '../../src/domain/slurm/survey-report.ts';
import { newPublicKey } from '../support/ssh-keys.ts';

const account = (name: string, changes: Partial<SurveyedAccount> = {}): SurveyedAccount => ({
  ...{ name, source: 'files', uid: 1003, gid: 1003, gecos: '', home: `/home/${name}` },
  ...{ shell: '/bin/bash', password: 'none', expired: false },
  ...changes,
});

type Changes = Partial<Omit<SurveyedHost, 'accounts'>>;

function host(name: string, accounts: SurveyedAccount[], changes: Changes = {}): SurveyedHost {
  return {
    ...{ host: name, roles: name === 'head' ? ['controller', 'login'] : ['compute'] },
    ...{ fault: null, homes: new Map(), linked: [], homeNames: [] },
    accounts: new Map(accounts.map((one) => [one.name, one])),
    candidates: accounts.filter(({ uid }) => uid >= 1000 || uid === 0).map((one) => one.name),
    groups: [{ name: 'bob', gid: 1003, members: [] }],
    ...{ closed: [], keys: [], read: accounts.map((one) => one.name), logins: [] },
    ...{ sudoers: [], services: [] },
    ...{ passwdSum: name, directories: [], notices: [], nodes: [] },
    ...{ slurm: new Map() },
    ...changes,
  };
}

const key = newPublicKey();
const withKey: Changes = { keys: [{ name: 'bob', file: '/home/bob/.ssh/authorized_keys', line: key }] };
const survey = (...hosts: SurveyedHost[]) => mergeSurvey(hosts, { manager: 'manager', gatewayKeys: [] });
/** What a survey of these hosts says of bob, or of who is named. */
function judged(hosts: SurveyedHost[], name = 'bob') {
  const found = survey(...hosts).people.find(({ username }) => username === name);
  assert.ok(found, name);
  return [found.verdict, found.reasons, found.commands];
}
const bob = (changes: Partial<SurveyedAccount> = {}) => account('bob', changes);
const alone = (changes: Partial<SurveyedAccount>, more: Changes = {}) => [
  host('head', [bob(changes)], { ...withKey, ...more }),
];
const inGroup = (name: string): Changes => ({ groups: [{ name, gid: 27, members: ['bob'] }] });

const verdicts: Record<
  string,
  [hosts: SurveyedHost[], verdict: string, reasons: string[], commands?: string[]]
> = {
  'a person with a key': [alone({}), 'adopt', []],
  'a primary group that others have': [alone({ gid: 100 }), 'adopt', []],
  'no key': [[host('head', [bob()])], 'needs_key', ['it has no key']],
  'no login node answered': [
    [
      host('head', [bob()], { roles: ['controller'] }),
      host('login', [], { roles: ['login'], fault: 'away' }),
    ],
    'adopt',
    ['its keys on login are not known'],
  ],
  'there is no login node': [
    [host('head', [bob()], { roles: ['controller'] })],
    'adopt',
    ['its keys on login nodes are not known'],
  ],
  'its keys were not read': [
    [host('head', [bob()], { read: [] })],
    'adopt',
    ['its keys on head are not known'],
  ],
  'its keys were read on one login node of two': [
    [host('head', [bob()]), host('login', [bob()], { roles: ['login'], read: [] })],
    'adopt',
    ['its keys on login are not known'],
  ],
  'a compute node alone has a key, homes, rights and a service': [
    [
      host('head', [bob({ home: '/data/bob' })]),
      host('a1', [bob()], {
        ...withKey,
        ...{ linked: ['bob'], homes: new Map([['/data/bob', { owner: 0, mode: '777' }]]) },
        ...{ closed: ['/data/bob'], sudoers: ['bob'], services: ['bob'] },
        groups: [{ name: 'docker', gid: 27, members: ['bob'] }],
      }),
    ],
    'differs',
    [
      'on a1 it is in the group docker',
      'on a1 sudoers names it',
      'on a1 a service runs as it',
      'its home is /data/bob, not /home/bob',
      'it has no key',
    ],
    ['ln -s /data/bob /home/bob'],
  ],
  'compute nodes, however many, are not the measure': [
    [...alone({}), host('a1', [bob({ uid: 1999 })]), host('a2', [bob({ uid: 1999 })])],
    'differs',
    ['a1 has uid 1999 and gid 1003, not 1003 and 1003', 'a2 has uid 1999 and gid 1003, not 1003 and 1003'],
    ['a1', 'a2'].flatMap((node) => [
      `${node}: usermod -u 1003 bob`,
      `${node}: find / -xdev -user 1999 -exec chown -h 1003 {} +`,
    ]),
  ],
  'the controller counts before a login node, and that before compute nodes': [
    [
      host('head', [], { roles: ['controller'] }),
      host('login', [bob()], { ...withKey, roles: ['login'] }),
      host('a1', [bob({ gid: 100 })]),
    ],
    'differs',
    ['a1 has uid 1003 and gid 100, not 1003 and 1003', 'it is not on head'],
    ['a1: usermod -g 1003 bob'],
  ],
  'a name twice on a compute node is no other number on the rest': [
    [host('head', [bob(), account('rob')]), host('a1', [bob()])],
    'not_person',
    ['rob has the same number'],
  ],
  'not on every host': [[...alone({}), host('a1', [])], 'adopt', ['it is not on a1']],
  'a silent host is not one without the account': [
    [...alone({}), host('a1', [], { fault: 'away' })],
    'adopt',
    [],
  ],
  'numbers differ': [
    [
      ...alone({}),
      host('a1', [bob()]),
      host('a2', [bob({ uid: 1009, gid: 1009 })], { groups: [{ name: 'bob', gid: 1009, members: [] }] }),
    ],
    'differs',
    ['a2 has uid 1009 and gid 1009, not 1003 and 1003'],
    [
      'a2: groupmod -g 1003 bob && usermod -u 1003 bob',
      'a2: find / -xdev -group 1009 -exec chgrp -h 1003 {} + && find / -xdev -user 1009 -exec chown -h 1003 {} +',
    ],
  ],
  'the primary group differs, and is one that others have': [
    [...alone({}), host('a1', [bob()]), host('a2', [bob({ gid: 100 })])],
    'differs',
    ['a2 has uid 1003 and gid 100, not 1003 and 1003'],
    ['a2: usermod -g 1003 bob'],
  ],
  'two hosts, two numbers: the controller counts': [
    [...alone({}), host('a1', [bob({ uid: 1009 })])],
    'differs',
    ['a1 has uid 1009 and gid 1003, not 1003 and 1003'],
    ['a1: usermod -u 1003 bob', 'a1: find / -xdev -user 1009 -exec chown -h 1003 {} +'],
  ],
  "another's number on one host": [
    [...alone({}), host('a1', [account('carol')])],
    'differs',
    ['a1 gives 1003 to carol', 'it is not on a1'],
  ],
  'home is another': [
    alone({ home: '/data/home/bob' }),
    'home',
    ['its home is /data/home/bob, not /home/bob'],
    ['ln -s /data/home/bob /home/bob'],
  ],
  'home is another that /home/bob leads to': [
    [...alone({ home: '/data/home/bob' }, { linked: ['bob'] })],
    'adopt',
    [],
    [],
  ],
  'a home with a blank': [
    alone({ home: "/data/b'o b" }),
    'home',
    ["its home is /data/b'o b, not /home/bob"],
    ["ln -s '/data/b'\\''o b' /home/bob"],
  ],
  ...Object.fromEntries(
    ['sudo', 'wheel', 'docker', 'lxd', 'disk'].map((name) => [
      `in ${name}`,
      [alone({}, inGroup(name)), 'privileged', [`it is in the group ${name}`]],
    ]),
  ),
  'a group that sudoers names': [
    alone({}, { ...inGroup('admins'), sudoers: ['%admins'] }),
    'privileged',
    ['it is in the group admins'],
  ],
  'sudoers names the account': [alone({}, { sudoers: ['bob'] }), 'privileged', ['sudoers names it']],
  'sudoers names the number': [alone({}, { sudoers: ['#1003'] }), 'privileged', ['sudoers names it']],
  'privileged with another home': [
    alone({ home: '/x' }, { sudoers: ['bob'] }),
    'privileged',
    ['sudoers names it', 'its home is /x, not /home/bob'],
    ['ln -s /x /home/bob'],
  ],
  'root by number': [alone({ uid: 0 }), 'not_person', ['it has the number 0, which is root']],
  'a service': [alone({}, { services: ['bob'] }), 'not_person', ['a service runs as it']],
  'no shell': [alone({ shell: '/usr/sbin/nologin' }), 'not_person', ['its shell is /usr/sbin/nologin']],
  'two names, one number': [
    [host('head', [bob(), account('rob')])],
    'not_person',
    ['rob has the same number'],
  ],
  'six keys': [
    alone({}, { keys: Array.from({ length: 6 }, () => ({ name: 'bob', file: '', line: newPublicKey() })) }),
    'not_person',
    ['6 keys use it'],
  ],
  'what does not stop it': [
    alone({ password: 'locked', expired: true }),
    'adopt',
    ['it has expired', 'its password is locked'],
  ],
};

for (const [title, [hosts, verdict, reasons, commands = []]] of Object.entries(verdicts)) {
  test(`a survey judges: ${title}`, () => assert.deepEqual(judged(hosts), [verdict, reasons, commands]));
}

test('accounts of compute nodes alone are of no person, and are named', () => {
  const made = Array.from({ length: 7 }, (_, index) => account(`x${index}`, { uid: 2000 + index }));
  const user = { accounts: ['lab'], default: 'lab', level: 'Administrator', coordinates: [] };
  const slurm = new Map([['bob', { ...user, cpu: 1, gpu: 1, running: 1, pending: 1 }]]);
  const logins = [
    { host: 'a1', name: 'bob', from: '192.0.2.1', fingerprint: 'SHA256:x', times: 1, last: '' },
  ];
  const node = host('a1', [bob(), ...made], {
    slurm,
    logins,
    candidates: ['gone', 'x0', 'x1', 'x2', 'x3', 'x4', 'x5'],
  });
  const { people, notices } = survey(...alone({}), node);
  assert.deepEqual(
    people.map((one) => [one.username, one.slurm.level, one.logins, one.keys.length]),
    [['bob', '', [], 1]],
  );
  assert.deepEqual(notices, ['a1: neither the controller nor a login node has gone, x0, x1, x2, x3, 2 more']);
});

test('a survey offers another name where the contract does not allow one, and quotes the old one', () => {
  const names = ['Dr.Bob', 'drbob', "o'neil", '.lee', 'DOMAIN\\kim'];
  const accounts = names.map((name, index) => account(name, { uid: 2000 + index, gid: 100 }));
  const numbers = { cpu: 0, gpu: 0, running: 0, pending: 0 };
  const user = { accounts: ['lab'], default: 'lab', level: 'None', coordinates: [], ...numbers };
  const slurm = new Map([['dr.bob', user]]);
  const hosts = [host('head', accounts, { slurm, groups: [{ name: 'Dr.Bob', gid: 100, members: [] }] })];
  assert.deepEqual(judged(hosts, 'Dr.Bob').slice(0, 1), ['name']);
  assert.deepEqual(judged(hosts, 'Dr.Bob')[2], [
    'usermod -l drbob2 Dr.Bob',
    'groupmod -n drbob2 Dr.Bob',
    'sacctmgr modify user where name=Dr.Bob set newname=drbob2',
  ]);
  assert.deepEqual(judged(hosts, "o'neil")[2], ["usermod -l oneil 'o'\\''neil'"]);
  assert.deepEqual(judged(hosts, 'DOMAIN\\kim')[2], ["usermod -l domainkim 'DOMAIN\\kim'"]);
});

test('the management account is not a person, and the keys of the gateway are of none', () => {
  const { fingerprint = '' } = readLine(key, '') ?? {};
  const hosts = [host('head', [bob(), account('manager', { uid: 1004 })], withKey)];
  const { people } = mergeSurvey(hosts, { manager: 'manager', gatewayKeys: [fingerprint] });
  assert.deepEqual(
    people.map(({ username, verdict }) => [username, verdict]),
    [
      ['bob', 'needs_key'],
      ['manager', 'not_person'],
    ],
  );
});

test('a key that several accounts have is of none of them, and an account with the keys of several is shared', () => {
  const lines = { bob: [newPublicKey()], kim: [newPublicKey()] };
  const shared = [...lines.bob, ...lines.kim];
  const keys = Object.entries({ ...lines, guest: shared }).flatMap(([name, own]) =>
    own.map((line) => ({ name, file: 'f', line })),
  );
  const accounts = ['bob', 'kim', 'guest'].map((name, index) => account(name, { uid: 1003 + index }));
  const { people } = survey(host('head', accounts, { keys }));
  assert.deepEqual(
    people.map(({ username, verdict, reasons }) => [username, verdict, ...reasons]),
    [
      ['bob', 'needs_key', 'of its keys, one is in the account of guest too'],
      ['guest', 'not_person', '2 keys use it'],
      ['kim', 'needs_key', 'of its keys, one is in the account of guest too'],
    ],
  );
});

test('a line of authorized_keys is a key, or says why it cannot be registered', () => {
  const reasonOf = (line: string) => {
    const found = readLine(line, '');
    return found && (found.reason ?? 'registered');
  };
  const rsa = 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7';
  const lines: [string, string | undefined][] = [
    [key, 'registered'],
    [`  ${key} bob at "home"`, 'registered'],
    [`command="echo ssh-ed25519 is not it" ${key}`, 'has options'],
    [`from="10.0.0.1,*.lab",restrict ${key} bob`, 'has options'],
    [`cert-authority ${key}`, 'has options'],
    [`environment="A=B C" ${key}`, 'has options'],
    [rsa, 'is ssh-rsa'],
    ['ecdsa-sha2-nistp256 AAAAE2VjZHNh me', 'is ecdsa-sha2-nistp256'],
    ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA', 'is not readable'],
    [`${key} ${key}`, 'is not readable'],
    ['ssh-ed25519', undefined],
    ['1024 35 1234567890 old@rsa1', undefined],
    ['', undefined],
    ['end', undefined],
    ['x'.repeat(8_000), undefined],
  ];
  for (const [line, expected] of lines) assert.equal(reasonOf(line), expected, line.slice(0, 80));
});

test('what concerns the whole cluster is said in the order of its weight', () => {
  const { notices } = survey(
    host('head', [bob({ source: 'directory' })], {
      directories: ['sssd ldap'],
      notices: [
        { kind: 'other', text: 'a note' },
        { kind: 'writer', text: 'Puppet' },
        { kind: 'first', text: '/home needs Kerberos' },
      ],
    }),
    host('a1', [], { directories: ['sssd ldap'] }),
    host('a2', [], { fault: 'a2 does not answer in time.' }),
  );
  assert.deepEqual(notices, [
    'head: /home needs Kerberos',
    'a2 is not in this survey: a2 does not answer in time.',
    'head: people come from a directory (sssd ldap)',
    'a1: the directory (sssd ldap) knew none of the names: that does not say that they are gone',
    'head: may write account files: Puppet',
    'head: a note',
  ]);
  const copied = survey(host('a1', [], { passwdSum: 'x' }), host('a2', [], { passwdSum: 'x' })).notices;
  assert.deepEqual(copied, ['All hosts have the same /etc/passwd: it is copied from one to the others.']);
});

test('a lab file of a survey has who can be adopted, and lists what a person must decide', () => {
  const accounts = [
    bob({ gecos: 'Bob,Room 1' }),
    account('kim', { uid: 1004 }),
    account('Lee', { uid: 1005 }),
    account('max', { uid: 1006, password: 'locked' }),
    account('ned', { uid: 1007, expired: true }),
    account('oda', { uid: 1008 }),
    account('robot', { uid: 1009, shell: '/bin/false' }),
  ];
  const keys = [...(withKey.keys ?? []), { name: 'oda', file: '', line: `restrict ${key}` }];
  const found = survey(host('head', accounts, { keys, sudoers: ['kim'] }));
  const answer = { cluster: 'alpha', organization: { slug: 'physics', name: 'Physics' }, ...found };
  const known = readPeople('login,email,name\nkim,Kim@lab.example,"Kim ""K"", Jr."\noda,bob@lab.example,\n');
  const { lab, open } = labOfSurvey(answer, { known, pattern: '{username}@lab.example' });
  checkLab(lab as Lab);
  const access = { permissions: ['clusters.read', 'clusters.ssh'] };
  assert.deepEqual(lab, {
    users: [
      { email: 'bob@lab.example', name: 'Bob' },
      { email: 'Kim@lab.example', name: 'Kim "K", Jr.' },
    ],
    organizations: [
      {
        slug: 'physics',
        name: 'Physics',
        members: [
          { email: 'bob@lab.example', role: 'member', username: 'bob', uid: 1003, gid: 1003, ...access },
          { email: 'Kim@lab.example', role: 'member', username: 'kim', uid: 1004, gid: 1003, ...access },
        ],
      },
    ],
  });
  const { fingerprint } = readLine(key, '') ?? {};
  assert.deepEqual(open, [
    'Lee (uid 1005, gid 1003) is left out: the name cannot be one here; it could be lee',
    'max (uid 1006, gid 1003) is left out: its password is locked, as of a person who left',
    'ned (uid 1007, gid 1003) is left out: it has expired',
    'oda (uid 1008, gid 1003) is left out: bob@lab.example is the address of another',
    'slurm of alpha needs adoptPrivileged: [kim] for those who may become root',
    `the key ${fingerprint} of bob is in the account of oda too`,
    `the key ${fingerprint} of oda has options`,
  ]);
  const others = readPeople('BOB,b@lab.example\nzoe,zoe@lab.example\nrobot,r@lab.example');
  assert.deepEqual(labOfSurvey(answer, { known: others }).open.slice(-2), [
    'BOB of the list of people is no account of this survey; there is bob',
    'zoe of the list of people is no account of this survey',
  ]);
  const without = labOfSurvey(answer, { known: new Map() });
  assert.match(without.open.join('\n'), /^bob \(uid 1003, gid 1003\) is left out: no address is known$/m);
});

test('what plan would refuse is left out of a lab file, each with a line, and the rest of it is planned', () => {
  const accounts = [
    bob({ gid: 0 }),
    account('kim', { uid: 2 ** 31 }),
    account('max', { uid: 1004, gid: 2 ** 31 }),
    account('ned', { uid: 1005 }),
    account('oda', { uid: 1005 }),
    account('pat', { uid: 1006 }),
  ];
  // Two hosts, so that they are no twins everywhere.
  const login = host('login', [account('oda', { uid: 1010 }), account('ned', { uid: 1005 })], {
    roles: ['login'],
  });
  const found = survey(host('head', accounts), login);
  const answer = { cluster: 'alpha', organization: { slug: 'physics', name: 'Physics' }, ...found };
  const { lab, open } = labOfSurvey(answer, { known: new Map(), pattern: '{username}@lab.example' });
  checkLab(lab as Lab);
  assert.deepEqual(
    lab.organizations[0]?.members.map(({ username }) => username),
    ['ned', 'pat'],
  );
  assert.deepEqual(
    open.filter((line) => line.includes('left out')),
    [
      'bob (uid 1003, gid 0) is left out: The gid of bob@lab.example is 0, not between 1 and 2147483647',
      'kim (uid 2147483648, gid 1003) is left out: The uid of kim@lab.example is 2147483648, not between 1 and 2147483647',
      'max (uid 1004, gid 2147483648) is left out: The gid of max@lab.example is 2147483648, not between 1 and 2147483647',
      'oda (uid 1005, gid 1003) is left out: ned@lab.example and oda@lab.example have the same uid 1005',
    ],
  );
});

test('a lab file says whose keys are not known, and has no control characters of accounts', () => {
  const hostile = '\u001b[2J\u202eevil\u0007\u2066 one';
  const keys = [{ name: 'bob', file: 'f', line: `${key} a\u001b[2J\u202eb` }];
  const accounts = [bob({ gecos: `${hostile},x` }), account('kim', { uid: 1004, gecos: 'x'.repeat(300) })];
  const found = survey(host('head', accounts, { keys, read: ['bob'] }));
  const answer = { cluster: 'alpha', organization: { slug: 'physics', name: 'Physics' }, ...found };
  const { lab, open } = labOfSurvey(answer, { known: new Map(), pattern: '{username}@lab.example' });
  assert.deepEqual(lab.users, [
    { email: 'bob@lab.example', name: '[2Jevil one' },
    { email: 'kim@lab.example', name: 'x'.repeat(200) },
  ]);
  assert.deepEqual(lab.organizations[0]?.members[0]?.keys, [`${key} a[2Jb`]);
  assert.deepEqual(open, ['the keys on head are not known of kim']);
});

test('a list of people is read whatever a spreadsheet makes of it, and a wrong line is named', () => {
  const two = new Map([
    ['bob', { email: 'bob@lab.example', name: 'Bob' }],
    ['Ivy.Lee', { email: 'ivy@lab.example', name: 'Lee; Ivy' }],
  ]);
  assert.deepEqual(
    readPeople(
      '\ufeffLogin;E-Mail;Name\r\nbob;bob@lab.example;Bob\r\n"Ivy.Lee";ivy@lab.example;"Lee; Ivy"\r\n\r\n',
    ),
    two,
  );
  assert.deepEqual(readPeople('bob,bob@lab.example,Bob\nIvy.Lee,ivy@lab.example,Lee; Ivy'), two);
  assert.throws(() => readPeople('bob,bob@lab.example\nkim,kim'), /^Error: line 2 is not login,email,name$/);
  assert.throws(() => readPeople('login,email\n,kim@lab.example'), /line 2/);
  assert.deepEqual(
    readPeople(' "bob" , "bob@lab.example", "Bob"\nIvy.Lee,ivy@lab.example, "Lee; Ivy" '),
    two,
  );
  assert.deepEqual(readPeople('bob\tbob@lab.example\t"Bob"\nIvy.Lee\tivy@lab.example\tLee; Ivy'), two);
  const named = (name: string) => [...readPeople(`bob,bob@lab.example,${name}`).values()][0]?.name;
  assert.deepEqual(['"Bob ""B"", Jr."', 'Bob "B" Lee', '', '""'].map(named), [
    'Bob "B", Jr.',
    'Bob "B" Lee',
    '',
    '',
  ]);
  for (const line of ['"bob', '"bob"x,', 'bob,"bob@lab.example', 'bob,bob@lab.example,"Bob" B'])
    assert.throws(
      () => readPeople(`login,email\n${line}`),
      /^Error: line 2 has a quote without its other one$/,
    );
  assert.throws(
    () => readPeople('bob,bob@lab.example,Bob\nbob,evil@lab.example,Evil'),
    /^Error: line 2 has the login bob again$/,
  );
});
