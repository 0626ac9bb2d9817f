/** docs/clusters.md: its example of a Slurm cluster is a lab file, and says what the default ends. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readLab } from '../../src/service/config/lab-file.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { readPage } from './pages.ts';

const { settings } = readPage('clusters.md', 'Slurm');
const [example = ''] = settings.filter((block) => block.includes('slurm:'));

test('the example of a Slurm cluster is a lab file with every setting', () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'lab.yaml');
  const cluster = example.replaceAll('ssh-ed25519 …', 'ssh-ed25519 AAAA');
  writeFileSync(
    file,
    `organizations: [{ slug: physics, name: Physics, members: [{ email: a@x.example, role: owner }] }]\n${cluster}`,
  );
  const { slurm } = readLab(file).clusters?.[0] ?? {};
  assert.deepEqual([slurm?.rollout, slurm?.trialNode], ['restart', 'node7']);
});

test('the example says in its line what rollout restart ends, and that there is live', () => {
  assert.match(example, /^ +rollout: restart +# a first key ends all sessions and jobs; live: .+$/m);
});
