import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkLab, type Lab } from '../../src/domain/clusters/lab.ts';
import type { LabMember } from '../../src/domain/clusters/lab-member.ts';
import { planLab } from '../../src/domain/clusters/lab-plan.ts';

const now = Date.parse('2026-01-01T00:00:00Z');
const simulated = { computeNodes: 2, gpusPerNode: 8 };
const at = (name: string) => `${name}@x.example`;
const physics = (...members: LabMember[]) => ({
  organizations: [{ slug: 'physics', name: 'Physics', members }],
});
const viewer = { user: 'eve@y.example', cluster: 'alpha', relation: 'kubernetes.viewer' as const };
const current: Lab = {
  users: [{ email: at('ada'), name: 'Ada', staff: ['staff.operate'] }, { email: at('bob') }],
  organizations: [
    {
      ...{ slug: 'physics', name: 'Physics', autoJoinDomains: ['x.example'] },
      members: [
        { email: at('ada'), role: 'owner', username: 'ada' },
        { email: at('bob'), role: 'member', username: 'bob', permissions: ['clusters.read', 'clusters.ssh'] },
      ],
    },
  ],
  clusters: [
    {
      ...{ name: 'alpha', id: '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50', organization: 'physics' },
      ...{ site: { id: 'default', name: 'default' }, scheduler: 'sunk', simulated },
    },
  ],
  grants: [{ ...viewer, expiresAt: '2030-01-01T00:00:00.000Z' }],
};
const [organization] = current.organizations ?? [];
const [cluster] = current.clusters ?? [];
if (!organization || !cluster) throw new Error('unreachable');

const lines = (wanted: Lab, prune = false, from = current) =>
  planLab(from, wanted, { prune, now }).map(
    ({ action, kind, name, details }) => `${action} ${kind} ${name}${details === '' ? '' : `: ${details}`}`,
  );

const ended = {
  ...{ user: 'old@y.example', relation: 'kubernetes.admin' as const, expiresAt: '2020-01-01T00:00:00Z' },
};
const cases: [string, Lab, string[]][] = [
  ['the same again is nothing', current, []],
  ['an empty file is nothing', {}, []],
  [
    'the same in other words is nothing',
    {
      users: [{ email: 'ADA@x.example' }],
      organizations: [
        {
          ...{ slug: 'physics', name: 'Physics', autoJoinDomains: ['X.EXAMPLE'] },
          members: [
            { email: 'Bob@x.example', role: 'member', permissions: ['clusters.ssh', 'clusters.read'] },
          ],
        },
      ],
      clusters: [{ name: 'alpha', organization: 'physics', simulated: { gpusPerNode: 8, computeNodes: 2 } }],
      grants: [{ user: 'EVE@y.example', cluster: 'alpha', relation: 'kubernetes.viewer' }],
    },
    [],
  ],
  [
    'a person and their staff keys',
    {
      users: [
        { email: at('ada'), name: 'Ada L.', staff: [] },
        { email: at('new'), name: 'New' },
      ],
    },
    [
      'update person ada@x.example: name Ada → Ada L.; staff keys staff.operate → none',
      'create person new@x.example: New',
    ],
  ],
  [
    'members: people who are missing get accounts, asked-for usernames come first, owners are made before they step down',
    {
      organizations: [
        {
          ...{ slug: 'physics', name: 'Physics!' },
          members: [
            { email: at('ada'), role: 'admin' },
            { email: at('cy'), role: 'member' },
            { email: at('dot'), role: 'member', username: 'cy', permissions: ['clusters.ssh'] },
            { email: at('bob'), role: 'owner' },
          ],
        },
      ],
    },
    [
      'create person cy@x.example',
      'create person dot@x.example',
      'update organization physics: name Physics → Physics!',
      'create member physics/dot@x.example: role member; username cy; clusters.ssh',
      'create member physics/cy@x.example: role member',
      'update member physics/bob@x.example: role member → owner',
      'update member physics/ada@x.example: role owner → admin',
    ],
  ],
  [
    'permissions, where given, are the whole set',
    physics({ email: at('bob'), role: 'member', permissions: ['clusters.read'] }),
    ['update member physics/bob@x.example: permissions clusters.read, clusters.ssh → clusters.read'],
  ],
  [
    'a new organization with its cluster',
    {
      organizations: [{ slug: 'new', name: 'New', members: [{ email: 'ada@x.example', role: 'owner' }] }],
      clusters: [{ name: 'beta', organization: 'new', scheduler: 'kubernetes', simulated }],
    },
    [
      'create organization new: New',
      'create member new/ada@x.example: role owner',
      'create cluster beta: scheduler kubernetes; organization new',
    ],
  ],
  [
    'new settings of a cluster',
    {
      clusters: [{ ...cluster, site: { id: 'r', name: 'R' }, simulated: { ...simulated, computeNodes: 3 } }],
    },
    ['update cluster alpha: new settings: site, simulated'],
  ],
  [
    'grants: a new one, another end, and one that has ended already, whose person has an account',
    {
      grants: [
        { ...viewer, expiresAt: '2031-01-01T00:00:00Z' },
        { ...viewer, relation: 'kubernetes.developer', namespace: 'a', roleId: 'r' },
        { ...viewer, ...ended },
      ],
    },
    [
      'create person eve@y.example',
      'create person old@y.example',
      'update grant eve@y.example kubernetes.viewer on alpha: until 2030-01-01T00:00:00.000Z → 2031-01-01T00:00:00Z',
      'create grant eve@y.example kubernetes.developer on alpha/a as r',
    ],
  ],
];

for (const [what, wanted, expected] of cases) {
  test(`plan: ${what}`, () => {
    const from = {
      ...current,
      users: [...(current.users ?? []), ...(what.startsWith('the same') ? [{ email: 'eve@y.example' }] : [])],
    };
    assert.deepEqual(lines(wanted, false, from), expected);
  });
}

test('plan: whom only an ended grant names, and whose account is deactivated, is left alone', () => {
  const grants = [{ ...viewer, ...ended, user: 'Old@y.example' }];
  const deactivated = new Set(['old@y.example']);
  assert.deepEqual(planLab(current, { grants }, { prune: false, now, deactivated }), []);
});

test('prune removes what the file leaves out, last; no member of an organization that it does not name', () => {
  const wanted: Lab = {
    organizations: [{ ...organization, members: organization.members?.slice(0, 1) ?? [] }],
  };
  assert.deepEqual(lines(wanted, true), [
    'remove grant eve@y.example kubernetes.viewer on alpha: revoked',
    'remove cluster alpha: released',
    'remove member physics/bob@x.example: was member',
  ]);
  assert.deepEqual(lines(wanted), []);
  assert.deepEqual(
    lines({ users: [] }, true).filter((line) => line.includes('member')),
    [],
  );
});

test('pruning with an empty file is refused: it would take everything away', () => {
  assert.throws(() => lines({}, true), { code: 'invalid_request', message: /empty/ });
});

test('a new operator is made before the old one steps down, in whatever order they stand', () => {
  const wanted: Lab = {
    users: [
      { email: 'ada@x.example', staff: [] },
      { email: 'bob@x.example', staff: ['staff.operate'] },
    ],
  };
  assert.deepEqual(
    lines(wanted).map((line) => line.split(':')[0]),
    ['update person bob@x.example', 'update person ada@x.example'],
  );
});

const refused: [string, Lab, string][] = [
  [
    'a new organization without an owner',
    { organizations: [{ slug: 'n', name: 'N' }] },
    'Organization n needs an owner.',
  ],
  [
    'a cluster of no organization',
    { clusters: [{ name: 'beta', organization: 'chemistry', simulated }] },
    'Cluster beta names the organization chemistry, which does not exist.',
  ],
  [
    'a grant on no cluster',
    { grants: [{ user: 'e@y.example', cluster: 'beta', relation: 'kubernetes.viewer' }] },
    'A grant names the cluster beta, which does not exist.',
  ],
  [
    'another scheduler',
    { clusters: [{ ...cluster, scheduler: 'kubernetes' }] },
    'Cluster alpha has the scheduler sunk, which cannot change to kubernetes. Release it and add another.',
  ],
];
for (const [what, wanted, message] of refused) {
  test(`refused: ${what}`, () => assert.throws(() => lines(wanted), { message }));
}

const beta = { name: 'beta', organization: 'physics', scheduler: 'sunk' as const };

test('a Slurm cluster that restarts for people says what that ends and that there is another way, and a live one does not', () => {
  const host = { host: '10.0.0.5', port: 22, hostKey: 'ssh-ed25519 AAAA' };
  const manage = { user: 'root', identityFile: 'keys/manage' };
  const login = [{ name: 'login1', ...host }];
  const slurm = { loginMode: 'Shared' as const, login, controller: host, manage };
  const planned = (settings: object, from = current) =>
    lines({ clusters: [{ ...beta, ...settings }] }, false, from).join();
  const warning =
    /rollout restart: each first key or lost account ends all sessions and jobs there \(live ends only/;
  assert.match(planned({ slurm }), warning);
  assert.match(planned({ slurm: { ...slurm, rollout: 'restart' } }), warning);
  assert.doesNotMatch(planned({ slurm: { ...slurm, rollout: 'live' } }), /rollout/);
  assert.doesNotMatch(planned({ simulated }), /rollout/);
  const live = { ...current, clusters: [{ ...beta, slurm: { ...slurm, rollout: 'live' as const } }] };
  assert.match(planned({ slurm }, live), warning);
  const directory = { accounts: 'directory' as const };
  const mixed = { ...slurm, controller: { ...host, ...directory } };
  assert.match(planned({ slurm: mixed }), warning);
  const fromDirectory = { ...mixed, login: login.map((one) => ({ ...one, ...directory })) };
  assert.match(planned({ slurm: fromDirectory }), /accounts directory: nothing restarts for people/);
});

test('a plan names what changes of the Slurm account, value by value', () => {
  const host = { local: true };
  const login = [{ name: 'login1', host: '10.0.0.5', hostKey: 'ssh-ed25519 AAAA', local: true }];
  const slurm = { login, controller: host, rollout: 'live' as const };
  const planned = (from: object, to: object) => {
    const labOf = (more: object): Lab => ({ clusters: [{ ...beta, slurm: { ...slurm, ...more } }] });
    return lines(labOf(to), false, { ...current, ...labOf(from) }).join();
  };
  const before = { accounting: { parent: 'science', fairshare: 40, grpTres: { gpu: 8, cpu: 4 } } };
  const after = { accounting: { fairshare: 40, grpTres: { gpu: 16 }, roles: { admin: { maxJobs: 9 } } } };
  const changes =
    /parent science → unset, GrpTRES gres\/gpu=8,cpu=4 → gres\/gpu=16, admins' MaxJobs unset → 9/;
  assert.match(planned(before, after), new RegExp(`Slurm account: ${changes.source}`));
  const hostile = { accounting: { grpTres: { 'gpu=1 x': 1 } } };
  assert.throws(() => planned(before, hostile), /no resource of Slurm/);
  assert.doesNotMatch(planned({}, { trialNode: 'a1' }), /Slurm account/);
});

test('a date of direct logins that is none, has passed or is more than a year away is refused; one that was set stays', () => {
  const host = { host: '10.0.0.5', hostKey: 'ssh-ed25519 AAAA' };
  const manage = { identityFile: '/etc/andromeda/manage' };
  const withDirect = (direct?: { until: string; services?: string[] }): Lab => {
    const slurm = {
      login: [{ name: 'login1', ...host }],
      controller: host,
      manage,
      ...(direct && { direct }),
    };
    return { clusters: [{ name: 'beta', organization: 'physics', scheduler: 'sunk', slurm }] };
  };
  const from = (direct?: { until: string }) => ({
    ...current,
    clusters: [...(current.clusters ?? []), ...(withDirect(direct).clusters ?? [])],
  });
  const refusals = [
    ['tomorrow', 'Cluster beta: direct.until is "tomorrow", which is no date such as 2027-01-31.'],
    ['2026-02-30', 'Cluster beta: direct.until is "2026-02-30", which is no date such as 2027-01-31.'],
    ['2026-1-31', 'Cluster beta: direct.until is "2026-1-31", which is no date such as 2027-01-31.'],
    ['2025-12-31', 'Cluster beta: direct.until is 2025-12-31, which has passed.'],
    [
      '2027-01-03',
      'Cluster beta: direct.until is 2027-01-03, more than a year away: take an earlier day, it can be moved later.',
    ],
  ] as const;
  for (const [until, message] of refusals) {
    const plan = () => {
      checkLab(withDirect({ until }));
      planLab(current, withDirect({ until }), { prune: false, now });
    };
    assert.throws(plan, { message }, until);
    assert.throws(
      () => {
        checkLab(withDirect({ until }));
        planLab(from({ until: '2026-03-01' }), withDirect({ until }), { prune: false, now });
      },
      { message },
    );
  }
  for (const name of ['root', 'a b', '../x', 'x:y', ''])
    assert.throws(
      () => checkLab(withDirect({ until: '2026-03-01', services: [name] })),
      /which cannot be a service/,
    );
  for (const until of ['2026-01-01', '2027-01-02']) {
    const said = lines(withDirect({ until, services: ['backup'] }), false, from());
    assert.match(
      said.join(),
      new RegExp(`direct logins until ${until} of people who .* revoked here, backup for good$`),
    );
  }
  // A file that was in force before its day passed can be applied again.
  assert.deepEqual(lines(withDirect({ until: '2025-12-31' }), false, from({ until: '2025-12-31' })), []);
  assert.match(lines(withDirect(), false, from({ until: '2026-03-01' })).join(), /direct logins end$/);
});
