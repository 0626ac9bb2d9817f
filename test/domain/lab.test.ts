/** A lab file, its `kubernetes` section included. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import type { PermissionKey } from '../../src/domain/access/permission.ts';
import { checkLab, type Lab, type LabCluster } from '../../src/domain/clusters/lab.ts';
import type { LabMember } from '../../src/domain/clusters/lab-member.ts';
import { planLab } from '../../src/domain/clusters/lab-plan.ts';
import { readLab } from '../../src/service/config/lab-file.ts';
import { temporaryDirectory } from '../support/directory.ts';

const owner: LabMember = { email: 'ada@x.example', role: 'owner', username: 'ada' };
const simulated = { computeNodes: 1, gpusPerNode: 1 };
const cluster: LabCluster = { name: 'alpha', organization: 'physics', simulated };
const lab = (members: LabMember[], rest: Partial<Lab> = {}): Lab => ({
  organizations: [{ slug: 'physics', name: 'Physics', members }],
  ...rest,
});
const physics = { slug: 'physics', name: 'Physics', members: [owner] };
const uuid = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';

const grant = {
  ...{ user: 'e@y.example', cluster: 'alpha', relation: 'kubernetes.viewer' as const },
  expiresAt: '2030-01-01T00:00:00Z',
};

test('an empty lab and a whole one are accepted', () => {
  checkLab({});
  checkLab(lab([owner], { clusters: [{ ...cluster, id: uuid }], grants: [grant] }));
});

const bob = { email: 'b@x.example', role: 'member' as const };
const holding = (permission: string) => lab([owner, { ...bob, permissions: [permission as PermissionKey] }]);
const withClusters = (...clusters: LabCluster[]) => lab([owner], { clusters });
const joining = (slug: string, domain: string) => ({ ...physics, slug, autoJoinDomains: [domain] });
const stored = (...types: ('ceph' | 'weka' | 'nfs')[]) =>
  withClusters({ ...cluster, simulated: { ...simulated, storage: { types } } });
const refused: [string, Lab, string][] = [
  [
    'a user twice, in whatever case',
    { users: [{ email: 'ada@x.example' }, { email: 'Ada@x.example' }] },
    'The user ada@x.example is there twice.',
  ],
  [
    'an organization twice',
    { organizations: [physics, physics] },
    'The organization physics is there twice.',
  ],
  [
    'a member twice',
    lab([owner, { ...bob, email: 'ADA@x.example' }]),
    'The member of physics ada@x.example is there twice.',
  ],
  [
    'a number twice',
    lab([
      { ...owner, uid: 1001 },
      { ...bob, uid: 1001 },
    ]),
    'ada@x.example and b@x.example have the same uid 1001.',
  ],
  ['a gid alone', lab([{ ...owner, gid: 100 }]), 'ada@x.example has a gid, and no uid.'],
  [
    'a username twice',
    lab([owner, { ...bob, username: 'ada' }]),
    'The username in physics ada is there twice.',
  ],
  [
    'a domain that joins two organizations',
    { organizations: [joining('physics', 'x.example'), joining('chemistry', 'X.example')] },
    'The autoJoinDomains entry x.example is there twice.',
  ],
  ['a permission that is none', holding('clusters.sudo'), 'clusters.sudo is not a permission.'],
  ['a permission of a role', holding('organization.owner'), 'organization.owner is not a permission.'],
  ['two clusters of one name', withClusters(cluster, cluster), 'The cluster alpha is there twice.'],
  [
    'two clusters of one id',
    withClusters({ ...cluster, id: uuid }, { ...cluster, name: 'beta', id: uuid.toUpperCase() }),
    `The cluster id ${uuid} is there twice.`,
  ],
  [
    'an id that is no UUID',
    withClusters({ ...cluster, id: 'alpha' }),
    'Cluster alpha: the id alpha is not a UUID.',
  ],
  ['NFS next to Ceph', stored('nfs', 'ceph'), 'Cluster alpha: NFS storage excludes Ceph and WEKA.'],
  ['NFS next to WEKA', stored('nfs', 'weka'), 'Cluster alpha: NFS storage excludes Ceph and WEKA.'],
  ...['soon', '275760-09-13', '2030-01-01', '2030-02-30T00:00:00Z', '9999-12-31T23:59:59-01:00'].map(
    (expiresAt): [string, Lab, string] => [
      `a grant whose expiresAt is ${expiresAt}, which is no whole RFC 3339 time`,
      lab([owner], { clusters: [cluster], grants: [{ ...grant, expiresAt }] }),
      `A grant's expiresAt is "${expiresAt}", which is not a time such as 2030-01-01T00:00:00Z.`,
    ],
  ),
];
test('a grant twice is refused, in whatever case', () => {
  const twice = ['e@y.example', 'E@y.example'].map((user) => ({ ...grant, user, namespace: 'a' }));
  assert.throws(() => checkLab(lab([owner], { clusters: [cluster], grants: twice })), {
    message: 'The grant e@y.example kubernetes.viewer on alpha/a is there twice.',
  });
});

for (const [what, given, message] of refused) {
  test(`refused: ${what}`, () => assert.throws(() => checkLab(given), { code: 'invalid_request', message }));
}

for (const username of ['root', 'Ada', '1a', `a${'b'.repeat(32)}`]) {
  test(`refused: the username ${username}`, () => {
    assert.throws(() => checkLab(lab([{ ...owner, username }])), { message: /cannot be a username/ });
  });
}

const kubernetes = { kubeconfig: '/etc/andromeda/gamma.kubeconfig' };
const labOf = (cluster: Partial<LabCluster>): Lab => ({
  organizations: [{ slug: 'physics', name: 'Physics', members: [{ email: 'ada@x.example', role: 'owner' }] }],
  clusters: [{ name: 'gamma', organization: 'physics', ...cluster }],
});

test('the scheduler may be called slurm, as everywhere else', () => {
  const { clusters } = checkLab({
    ...labOf({}),
    clusters: [{ name: 'a', organization: 'physics', scheduler: 'slurm', simulated }],
  });
  assert.equal(clusters?.[0]?.scheduler, 'sunk');
});

const refusedSections: [Partial<LabCluster>, RegExp][] = [
  [{}, /needs a section that says what it is: simulated, slurm, kubernetes/],
  [{ simulated, kubernetes }, /is simulated, or has slurm and kubernetes sections, not both/],
  [{ scheduler: 'sunk', kubernetes }, /has the scheduler slurm, which needs a slurm section/],
];
for (const [cluster, words] of refusedSections) {
  test(`refused: ${JSON.stringify(cluster)}`, () => assert.throws(() => checkLab(labOf(cluster)), words));
}

test('a cluster that is simulated does not become a real one', () => {
  const now = Date.now();
  const plan = () => planLab(labOf({ simulated }), labOf({ kubernetes }), { prune: false, now });
  assert.throws(plan, /is simulated, or has slurm and kubernetes sections/);
});

test('other settings are a step, the same ones are none', () => {
  const options = { prune: false, now: Date.now() };
  const before = labOf({ scheduler: 'kubernetes', kubernetes });
  const steps = (section: LabCluster['kubernetes']) =>
    planLab(before, labOf(section ? { kubernetes: section } : {}), options).filter(
      ({ kind }) => kind === 'cluster',
    );
  assert.deepEqual(steps({ ...kubernetes }), []);
  const details = steps({ ...kubernetes, context: 'x' }).map((step) => step.details);
  assert.deepEqual(details, ['new settings: kubernetes']);
});

test('relative paths are relative to the file that they stand in', () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'lab.yaml');
  const server = { server: 'https://10.0.0.1:6443', certificateAuthority: 'ca.pem', tokenFile: '/run/token' };
  writeFileSync(file, stringify(labOf({ kubernetes: server })));
  assert.deepEqual(readLab(file).clusters?.[0]?.kubernetes, {
    ...server,
    certificateAuthority: join(directory.path, 'ca.pem'),
  });
});
