/** The `kubernetes` section of a lab file. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { checkLab, type Lab, type LabCluster } from '../../src/domain/clusters/lab.ts';
import { planLab } from '../../src/domain/clusters/lab-plan.ts';
import { readLab } from '../../src/service/config/lab-file.ts';
import { temporaryDirectory } from '../support/directory.ts';

const simulated = { computeNodes: 1, gpusPerNode: 1 };
const kubernetes = { kubeconfig: '/etc/andromeda/gamma.kubeconfig' };
const lab = (cluster: Partial<LabCluster>): Lab => ({
  organizations: [{ slug: 'physics', name: 'Physics', members: [{ email: 'ada@x.example', role: 'owner' }] }],
  clusters: [{ name: 'gamma', organization: 'physics', ...cluster }],
});

const refused: [Partial<LabCluster>, RegExp][] = [
  [{}, /needs a section that says what it is: simulated, slurm, kubernetes/],
  [{ simulated, kubernetes }, /is simulated, or has slurm and kubernetes sections, not both/],
  [{ scheduler: 'sunk', kubernetes }, /has the scheduler sunk, which needs a slurm section/],
];
for (const [cluster, words] of refused) {
  test(`refused: ${JSON.stringify(cluster)}`, () => assert.throws(() => checkLab(lab(cluster)), words));
}

test('a cluster that is simulated does not become a real one', () => {
  const now = Date.now();
  const plan = () => planLab(lab({ simulated }), lab({ kubernetes }), { prune: false, now });
  assert.throws(plan, /is simulated, or has slurm and kubernetes sections/);
});

test('other settings are a step, the same ones are none', () => {
  const options = { prune: false, now: Date.now() };
  const before = lab({ scheduler: 'kubernetes', kubernetes });
  const steps = (section: LabCluster['kubernetes']) =>
    planLab(before, lab(section ? { kubernetes: section } : {}), options).filter(
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
  writeFileSync(file, stringify(lab({ kubernetes: server })));
  assert.deepEqual(readLab(file).clusters?.[0]?.kubernetes, {
    ...server,
    certificateAuthority: join(directory.path, 'ca.pem'),
  });
});
