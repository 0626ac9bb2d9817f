/** The demonstration: an installation to try everything with, on loopback, and the page that explains it. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { styleText } from 'node:util';
import type { Lab } from '../../domain/clusters/lab.ts';
import { DomainError } from '../../domain/error.ts';
import { commandName } from '../../lib/packaging.ts';
import { writeWhole } from '../../lib/whole-file.ts';
import { listOrganizationClusters } from '../../store/clusters/clusters.ts';
import { makeDataDir } from '../../store/data-dir/lock.ts';
import { cipherWarning } from '../compose/components.ts';
import type { App } from '../compose/index.ts';
import type { Config } from '../config/index.ts';

const simulated = {
  computeNodes: 2,
  gpusPerNode: 8,
  gpusInUse: 5,
  machine: { gpuModel: 'NVIDIA H100', cpuCores: 64, memoryGib: 512 },
  storage: { types: ['ceph' as const], quotaBytes: 10 * 2 ** 40 },
};

const lab = {
  organizations: [
    {
      slug: 'demo-lab',
      name: 'Demo Lab',
      members: [
        { email: 'ada@demo.example', role: 'owner', username: 'ada' },
        {
          email: 'bob@demo.example',
          role: 'member',
          username: 'bob',
          permissions: ['clusters.read', 'clusters.ssh'],
        },
        {
          email: 'eve@demo.example',
          role: 'member',
          username: 'eve',
          permissions: ['clusters.read', 'clusters.kubernetes'],
        },
      ],
    },
  ],
  users: [
    { email: 'ada@demo.example', name: 'Ada Lovelace', staff: ['staff.operate'] },
    { email: 'bob@demo.example', name: 'Bob Kahn' },
    { email: 'eve@demo.example', name: 'Eve Curie' },
  ],
  clusters: [
    {
      name: 'alpha',
      organization: 'demo-lab',
      site: { id: 'room-1', name: 'Machine room 1' },
      scheduler: 'sunk',
      simulated: {
        ...simulated,
        runningJobs: [{ id: '4711', user: 'bob', name: 'train', machines: ['alpha-2'] }],
        pendingJobs: [{ id: '4712', user: 'ada', name: 'evaluate', reason: 'Priority', gpus: 16 }],
        requeue: true,
      },
    },
    {
      name: 'beta',
      organization: 'demo-lab',
      site: { id: 'room-1', name: 'Machine room 1' },
      scheduler: 'kubernetes',
      simulated,
    },
  ],
} satisfies Lab;

const mayDo: Record<string, string> = {
  'ada@demo.example': `may do everything, and operates the installation (${commandName} admin --help)`,
  'bob@demo.example': 'may log in to the Slurm cluster, and with root into job 4711',
  'eve@demo.example': 'may use Kubernetes only',
};

/**
 * The demonstration's lab and its people's passwords, which are generated on the first start and kept in the data
 * directory (0600) so that every start can show them. Throws `invalid_state` when the directory contains another
 * installation.
 */
export function demoInstallation(dataDir: string) {
  const file = join(dataDir, 'demo-passwords.json');
  if (!existsSync(file)) {
    if (existsSync(join(dataDir, 'andromeda.db'))) {
      throw new DomainError(
        'invalid_state',
        `${dataDir} holds an installation that is not the demonstration. Give another directory with --data.`,
      );
    }
    makeDataDir(dataDir);
    const made = Object.fromEntries(
      lab.users.map(({ email }) => [email, randomBytes(9).toString('base64url')]),
    );
    writeWhole(file, JSON.stringify(made, null, 2));
  }
  const passwords = new Map<string, string>(Object.entries(JSON.parse(readFileSync(file, 'utf8'))));
  return { lab: lab as Lab, source: 'the demonstration', passwords };
}

const head = (text: string) => styleText('bold', text);
const command = (text: string) => `     ${styleText('cyan', text)}`;

function accountLines(passwords: ReadonlyMap<string, string>): string[] {
  const members = lab.organizations[0]?.members ?? [];
  return members.map(
    ({ email, role }) => `${email}   ${role.padEnd(6)}   password ${passwords.get(email)}   ${mayDo[email]}`,
  );
}

function clusterLines(clusters: Awaited<ReturnType<typeof listOrganizationClusters>>): string[] {
  const kinds = {
    sunk: 'Slurm, 2 simulated compute nodes, a login node',
    kubernetes: 'Kubernetes, simulated',
  };
  return clusters
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, id, scheduler }) => `${name.padEnd(6)} ${id}  ${kinds[scheduler ?? 'kubernetes']}`);
}

export async function demoPage(
  app: App,
  config: Config,
  passwords: ReadonlyMap<string, string>,
): Promise<string> {
  const organization = await app.store.read
    .selectFrom('organizations')
    .select(['id'])
    .executeTakeFirstOrThrow();
  const clusters = await listOrganizationClusters(app.store.read, organization.id);
  const slurm = clusters.find((cluster) => cluster.scheduler === 'sunk');
  const { hostname, port } = config.gateway;
  const slow = cipherWarning();
  const body = JSON.stringify({ public_key: 'KEY' })
    .replaceAll('"', '\\"')
    .replace('KEY', '$(cat ~/.ssh/id_ed25519.pub)');
  return `
  ${head('Andromeda')}, the demonstration. Everything is on this machine only; Ctrl-C stops it.

  Console        ${config.console?.url}   sign in with an account below
  Platform API   ${config.platform.url}   docs: ${config.platform.url}/docs
  Business API   ${config.business.url}   docs: ${config.business.url}/docs
  Sign-in        ${app.issuerUrl}
  SSH gateway    ${hostname} port ${port}, host key ${app.gatewayFingerprint}
  Data           ${relative('.', config.dataDir) || '.'}${slow === undefined ? '' : `\n  ${styleText('yellow', slow)}`}

  ${head('Accounts')} of Demo Lab (${organization.id})
     ${accountLines(passwords).join('\n     ')}

  ${head('Clusters')}
     ${clusterLines(clusters).join('\n     ')}

  ${head('Try it')}, in another terminal in this directory:

  1. Sign in. It prints a web address: open it, sign in as ada@demo.example with the password above, approve.
${command(`${commandName} auth login --url ${config.platform.url}`)}
  2. See who you are.
${command(`${commandName} call business GET /me`)}
  3. Register your SSH key (no key yet? ssh-keygen -t ed25519).
${command(`${commandName} call -H 'Idempotency-Key: k1' -H 'Audit-Reason: first key' -d "${body}" business POST /me/ssh-keys`)}
  4. Wait until the cluster knows it: "ready":true, within seconds.
${command(`${commandName} call platform GET '/clusters/${slurm?.id}/ssh-access?organizationId=${organization.id}'`)}
  5. Log in.
${command(`ssh -p ${port} ${slurm?.id}.ada@${hostname}`)}
  6. Revoke the key (its ID is in the answer of step 3): the session ends.
${command(`${commandName} call -H 'Idempotency-Key: k2' -H 'Audit-Reason: done' business POST /me/ssh-keys/KEY_ID/revoke`)}

`;
}
