/** What the HTTP rows are measured on: two installations, and which requests are asked of each. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, organizationOf, registerKey } from './client.ts';

const alpha = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const ada = { email: 'ada@physics.example', role: 'member', username: 'ada' };
const owner = { email: 'olga@physics.example', role: 'owner', username: 'olga' };
const simulated = { computeNodes: 2, gpusPerNode: 8 };

/** Both APIs as Ada asks them. */
export interface Clients {
  business: Client;
  platform: Client;
}

export interface HttpInstallation {
  name: string;
  lab: object;
  targets: { title: string; api: keyof Clients; path: string }[];
  /** Which target is asked while everything is synced, and what is said of that. */
  whileSyncing?: { target: string; title: string };
}

/** Ada is a plain member, so that her permissions have to be looked up. Of `{org}` and `{lab}` IDs are made. */
export const httpInstallations: readonly HttpInstallation[] = [
  {
    name: '100 members',
    lab: {
      organizations: [
        {
          slug: 'physics',
          name: 'Physics',
          members: [
            { ...ada, permissions: ['clusters.read'] },
            owner,
            ...numbered(98, 'member').map((name) => ({
              email: `${name}@physics.example`,
              role: 'member',
              username: name,
            })),
          ],
        },
      ],
      clusters: [{ name: 'alpha', id: alpha, organization: 'physics', scheduler: 'kubernetes', simulated }],
    },
    targets: [
      { title: 'GET /me', api: 'business', path: '/me' },
      { title: 'GET …/members, 100 of them', api: 'business', path: '/organizations/{org}/members' },
      {
        title: 'GET /resource-access',
        api: 'business',
        path: `/resource-access?kind=kubernetes_cluster&id=${alpha}&gate=read`,
      },
    ],
  },
  {
    name: '200 clusters',
    lab: {
      organizations: [
        { slug: 'physics', name: 'Physics', members: [owner, { ...ada, permissions: ['clusters.read'] }] },
        {
          slug: 'lab',
          name: 'Lab',
          members: [owner, { ...ada, username: 'ada-lab', permissions: ['clusters.ssh'] }],
        },
      ],
      clusters: [
        ...numbered(200, 'cluster').map((name) => ({
          name,
          organization: 'physics',
          scheduler: 'kubernetes',
          simulated,
        })),
        { name: 'alpha', id: alpha, organization: 'lab', scheduler: 'sunk', simulated },
      ],
    },
    targets: [
      {
        title: 'GET /clusters, 200 of them',
        api: 'platform',
        path: '/clusters?businessOrgId={org}&limit=200',
      },
      {
        title: 'GET …/ssh-access',
        api: 'platform',
        path: `/clusters/${alpha}/ssh-access?organizationId={lab}`,
      },
    ],
    whileSyncing: { target: 'GET …/ssh-access', title: 'the same while 200 clusters sync' },
  },
];

/** Brings an installation to where people would use it, and returns how to write a target's path there. */
export async function settle(
  installation: HttpInstallation,
  { business, platform }: Clients,
): Promise<(path: string) => string> {
  const org = await organizationOf(business, 'ada');
  if (!installation.targets.some(({ path }) => path.includes('{lab}')))
    return (path) => path.replace('{org}', org);
  const lab = await organizationOf(business, 'ada-lab');
  await registerKey(business);
  await readyForSsh(platform, `/clusters/${alpha}/ssh-access?organizationId=${lab}`);
  return (path) => path.replace('{org}', org).replace('{lab}', lab);
}

/** So that ssh-access has everything to say. */
async function readyForSsh(platform: Client, path: string): Promise<void> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const { ready, reason } = (await (await platform.fetch(path)).json()) as {
      ready: boolean;
      reason: string;
    };
    if (ready) return;
    if (performance.now() > deadline) throw new Error(`the cluster does not become ready: ${reason}`);
    await sleep(50);
  }
}

function numbered(count: number, name: string): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);
}
