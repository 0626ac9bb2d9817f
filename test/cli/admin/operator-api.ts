/** What an operator API answers about a small installation. */
import type { Routes } from '../small-api.ts';

const at = '2026-01-02T03:04:05.000Z';
export const alphaId = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';

const physics = {
  organization: {
    id: 'org_1',
    slug: 'physics',
    display_name: 'Physics',
    lifecycle_state: 'active',
    created_by_user_id: 'user_0',
    created_at: at,
    updated_at: at,
  },
  auto_join_domains: ['physics.example', 'lab.example'],
  member_count: 2,
  cluster_count: 1,
};

export const bob = {
  id: 'user_bob',
  primary_email: 'bob@physics.example',
  display_name: 'Bob',
  lifecycle_state: 'active',
  staff_keys: [] as string[],
  created_at: at,
  updated_at: at,
};

export const alpha = {
  cluster: { id: alphaId, state: 'active', selected_scheduler: 'sunk' },
  name: 'alpha',
  organization_slug: 'physics',
  site: { id: 'room-1', name: 'Machine room 1' },
  drivers: ['slurm', 'kubernetes'],
  access_list: { generation: 3, state: 'converged' },
  observed_at: at,
  failure: null,
};

const machine = {
  id: '11111111-3c39-4a8e-9a55-0d1c2b3a4f50',
  cluster_id: alphaId,
  name: 'node-1',
  lifecycle_state: 'registered',
  gpu_model: 'H100 80GB',
  gpu_count: 8,
  cpu_cores: 96,
  memory_gib: 1024,
  ready: true,
  phase: 'idle',
};

export const purchase = {
  id: 'purchase_1',
  organization_id: 'org_1',
  target_cluster_id: alphaId,
  storage_type: 'ceph',
  bytes: 1099511627776,
  quote_id: 'quote_1',
  state: 'requested',
  created_by_user_id: 'user_bob',
  created_at: at,
};

export const session = {
  id: 'session_1',
  login_name: `${alphaId}.bob`,
  cluster_id: alphaId,
  user_id: 'user_bob',
  username: 'bob',
  key_id: 'ssh_key_1',
  fingerprint: 'SHA256:x',
  remote_address: '10.0.0.7:50123',
  login_node: 'login1',
  opened_at: at,
  channels: 1,
  bytes_up: 10,
  bytes_down: 20,
};

/** What looking things up needs. */
export const lookups: Routes = {
  'GET /operator/organizations': { organizations: [physics] },
  'GET /operator/people?limit=200': { people: [bob] },
  'GET /operator/people?email=bob%40physics.example&limit=200': { people: [bob] },
  'GET /operator/clusters': { clusters: [alpha] },
  [`GET /operator/clusters/${alphaId}/machines`]: { machines: [machine] },
};

export const gatewayRoute = {
  'GET /operator/gateway': {
    ...{ hostname: 'h', port: 22, host_key: 'ssh-ed25519 A', other_public_keys: [] },
    public_key: 'ssh-ed25519 AAAA gateway\n',
  },
};
