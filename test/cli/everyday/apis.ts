/** What both APIs answer to a member of one organization with a Slurm cluster and a Kubernetes cluster. */
import type { Business, Platform } from '../../../src/cli/net/api.ts';
import { alphaId } from '../admin/operator-api.ts';
import type { Routes } from '../small-api.ts';

const at = '2026-01-02T03:04:05.000Z';
export const gammaId = '9d6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
export const inPhysics = 'businessOrgId=org_1';

export const me = {
  user: { id: 'user_ada', primary_email: 'ada@physics.example', login_shell: '/bin/bash' },
  memberships: [{ org_id: 'org_1', organization_username: { username: 'ada' } }],
  default_org_id: 'org_1',
  staff_keys: [],
};

export function platformCluster(id: string, name: string, lifecycleState = 'active') {
  return {
    id,
    metadata: { createdAt: at, updatedAt: at },
    spec: {
      name,
      site: { id: 'room-1', name: 'Machine room 1' },
      businessOrganization: { id: 'org_1' },
      version: '1.33.1',
    },
    status: { lifecycleState, lifecycleVersion: 2, kubeletVersion: '' },
  };
}

export const alpha = platformCluster(alphaId, 'alpha');
export const gamma = platformCluster(gammaId, 'gamma');

export const access: Platform['SshAccess'] = {
  hostname: 'gateway.example',
  port: 2222,
  username: 'ada',
  host_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGhvc3Q=',
  host_key_fingerprint: 'SHA256:host',
  login_mode: 'Shared',
  ready: true,
  reason: 'ready',
  manifest_generation: 3,
  observed_manifest_generation: 3,
  ssh_key_set_generation: 2,
  key_fingerprints: [],
  shell: '/bin/bash',
  observation_current: true,
  observed_at: at,
};

/** `ssh-access` of alpha. */
export const accessRoute = `GET /clusters/${alphaId}/ssh-access?organizationId=org_1`;

type Use = Business['Use'];

const unoffered: Use = { state: 'none', reason: 'not_offered', granted: false, message: 'There is none.' };
const works: Use = { state: 'ready', reason: 'ready', granted: true, message: 'It works.' };

/** What the caller can do on alpha over SSH, and on gamma with kubectl; each works unless it is given. */
export function uses({ ssh = works, kubernetes = works }: { ssh?: Use; kubernetes?: Use } = {}) {
  const on = (id: string, name: string) => ({ cluster_id: id, cluster_name: name, organization_id: 'org_1' });
  const clusters: Business['ClusterUse'][] = [
    { ...on(alphaId, 'alpha'), ssh, kubernetes: unoffered },
    { ...on(gammaId, 'gamma'), ssh: unoffered, kubernetes },
  ];
  return { clusters };
}

export const options: Platform['ClusterOptions'] = {
  state: 'available',
  observedAt: at,
  scheduler: {
    configured: { state: 'configured', value: 'sunk' },
    ready: {
      type: 'SUNKReady',
      status: 'False',
      observedGeneration: 1,
      reason: 'NodesDown',
      message: 'node-2 is down',
    },
    supported: { kubernetes: true, sunk: true },
  },
  storage: {
    configured: { ceph: 'configured', weka: 'not_configured', nfs: 'not_configured' },
    quotaBytes: 1.5 * 2 ** 40,
    ready: { type: 'StorageReady', status: 'True', observedGeneration: 1 },
    supported: { ceph: true, nfs: true },
    purchase: { method: 'POST', path: '/x', target_cluster_id: alphaId },
  },
};

export const keySet = {
  generation: 2,
  keys: [
    {
      id: 'ssh_key_01J8Z3XK5T7Q2M4N6P8R0S1V3W',
      fingerprint: 'SHA256:old',
      lifecycle_state: 'revoked',
      created_at: at,
      revoked_at: '2026-02-03T00:00:00.000Z',
    },
    {
      id: 'ssh_key_01J8Z3XK5T7Q2M4N6P8R0S1V3X',
      fingerprint: 'SHA256:new',
      lifecycle_state: 'active',
      created_at: at,
    },
  ],
};

export const membership = {
  org_id: 'org_1',
  user_id: 'user_bob',
  email: 'bob@physics.example',
  role: 'member',
  lifecycle_state: 'active',
  organization_username: { username: 'bob' },
};

function inBusiness(id: string, scheduler: string) {
  return { id, selected_scheduler: scheduler, expected_node_count: 4, assigned_node_count: 2 };
}

/** What finding organizations, clusters and members needs. */
export const lookups: Routes = {
  'GET /me': me,
  'GET /organizations/org_1': { id: 'org_1', slug: 'physics', display_name: 'Physics' },
  [`GET /clusters?${inPhysics}&limit=200`]: { items: [alpha, gamma] },
  'GET /organizations/org_1/clusters': {
    clusters: [inBusiness(alphaId, 'sunk'), inBusiness(gammaId, 'kubernetes')],
  },
  'GET /organizations/org_1/members': {
    members: [
      membership,
      { ...membership, user_id: 'user_ada', email: 'ada@physics.example', role: 'owner' },
    ],
  },
};
