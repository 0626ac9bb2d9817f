/** Every everyday command that asks and prints, as golden text; ssh, wait and files have their own, and ../real.test.ts. */
import { join } from 'node:path';
import { alphaId } from '../admin/operator-api.ts';
import { goldenText } from '../golden.ts';
import { alpha, gammaId, inPhysics, keySet, lookups, me, options, uses } from './apis.ts';

const golden = goldenText(join(import.meta.dirname, 'nouns.golden.txt'), [], lookups);
const in1 = 'organizations/org_1';

const usageOfAlpha = `GET /clusters/${alphaId}/usage?${inPhysics}`;
const optionsOfAlpha = `GET /clusters/${alphaId}/options?${inPhysics}`;
golden(
  'clusters are listed and shown',
  {
    [optionsOfAlpha]: options,
    [usageOfAlpha]: {
      gpus: { total: 16, free: 3, in_use: 5, away: 8, unknown: 0 },
      machines: [
        { name: 'node-1', takes_work: true },
        { name: 'node-2', takes_work: false, reason: 'bad fan' },
      ],
    },
  },
  ['clusters list', 'clusters list --org physics', 'clusters list --org org_1', 'clusters show alpha'],
);

const pending = {
  state: 'pending',
  reason: 'applying',
  granted: true,
  next: 'service',
  message: 'Sending your permissions to gamma.',
} as const;
golden(
  'what the caller can do is shown for each cluster and way',
  { 'GET /me/access': uses({ kubernetes: pending }) },
  ['access', 'access show gamma'],
);

golden(
  'what the service wants a person to know is said once, apart from what was asked for',
  {
    'GET /me': { ...me, notices: ['Your access lapses.', 'A key lapses.'] },
    'GET /me/access': uses({ kubernetes: pending }),
  },
  ['clusters list'],
);

const used = {
  created_from: '192.0.2.9',
  last_used_at: '2999-01-02T03:04:05.000Z',
  last_used_from: '192.0.2.7',
};
golden(
  'a key that has lapsed, or will soon, or was never used, is said with what to do',
  {
    'GET /me/ssh-keys': {
      ...keySet,
      keys: [
        { ...keySet.keys[1], lapses_at: '2026-01-02T03:04:05.000Z' },
        { ...keySet.keys[1], id: 'ssh_key_2', lapses_at: '2999-01-02T03:04:05.000Z', label: 'old\nlaptop' },
        { ...keySet.keys[1], id: 'ssh_key_3', ...used },
      ],
    },
  },
  ['keys list'],
);

golden(
  'clusters come page by page',
  {
    [`GET /clusters?${inPhysics}&limit=200`]: { items: [alpha], nextPageToken: 'a b' },
    [`GET /clusters?${inPhysics}&limit=200&after=a+b`]: { items: [{ ...alpha, id: gammaId }] },
  },
  ['clusters list'],
);

const machine = {
  id: '11111111-3c39-4a8e-9a55-0d1c2b3a4f50',
  name: 'node-1',
  lifecycle_state: 'admitted',
  hardware: { gpu_model: 'H100', gpu_count: 8, cpu_cores: 96, memory_gib: 1024 },
  observed: { ready: true, phase: 'idle', freshness: 'fresh', observed_at: 'x', generation: 1 },
};
const [node2, node3] = ['2', '3'].map((digit) => machine.id.replaceAll('1', digit));
const machinesOfAlpha = `GET /clusters/${alphaId}/machines?${inPhysics}&limit=200`;
golden(
  'machines come page by page, and what one reported too long ago is not shown as true',
  {
    [machinesOfAlpha]: { items: [machine], next_page_token: 'n' },
    [`${machinesOfAlpha}&after=n`]: {
      items: [
        { ...machine, id: node2, name: 'node-2', observed: { ...machine.observed, freshness: 'stale' } },
        { ...machine, id: node3, name: 'node-3', hardware: {}, observed: undefined },
      ],
    },
    [usageOfAlpha]: {
      gpus: { total: 16, free: 3, in_use: 5, away: 0, unknown: 8 },
      machines: [
        { id: machine.id, name: 'node-1', takes_work: true, gpu_count: 8, gpus_in_use: 5 },
        { id: node2, name: 'node-2', takes_work: null, gpu_count: 8 },
        { id: node3, name: 'node-3', takes_work: false, reason: 'bad fan' },
      ],
    },
  },
  ['machines alpha'],
);

const usageOf1 = {
  organization_id: 'org_1',
  cluster_id: alphaId,
  observed_at: '2026-01-02T03:04:05.000Z',
  gpus: { total: 16, free: 5, in_use: 11, away: 0, unknown: 0, free_nodes: 0, biggest_block: 5 },
  machines: [
    { id: 'a', name: 'node-1', takes_work: true, gpu_count: 8, gpus_in_use: 8 },
    { id: 'b', name: 'node-2', takes_work: true, gpu_count: 8, gpus_in_use: 3 },
  ],
  jobs: [
    {
      ...{ id: '4711_3', name: 'train', user: 'bob', mine: true, machines: ['node-1', 'node-2'], gpus: 11 },
      started_at: '2026-01-02T03:00:00.000Z',
    },
    { id: '12', name: 'prepare', user: 'site', mine: false, machines: ['node-2'], gpus: 0 },
  ],
  pending_jobs: [
    {
      ...{ id: '13', name: 'next', user: 'bob', mine: true, gpus: 8, reason: 'Resources', ahead: 0 },
      expected_at: '2026-01-02T04:00:00.000Z',
    },
  ],
  other_jobs: { jobs: 2, gpus: 0, pending: 1 },
  pods: [{ namespace: 'team', name: 'notebook', machine: 'node-2', gpus: 1 }],
};
const usageOfAll = `GET /usage?${inPhysics}&cluster_ids=${alphaId}`;
golden('who runs what, and which GPUs are free', { [usageOfAll]: { items: [usageOf1] } }, [
  'jobs alpha',
  'jobs alpha --all',
  'gpus alpha',
]);
const silent = {
  ...usageOf1,
  pending_jobs: undefined,
  jobs: undefined,
  other_jobs: undefined,
  scheduler: 'sunk',
};
golden('what is not known to run is not said to be nothing', { [usageOfAll]: { items: [silent] } }, [
  'jobs alpha',
]);

const hoursOfAll = `GET /gpu-hours?${inPhysics}&days=7`;
const hoursOf1 = {
  cluster_id: alphaId,
  cluster_name: 'alpha',
  source: 'slurmdbd',
  first_day: '2026-01-01',
  gpu_hours: 3.5,
  members_gpu_hours: 2.5,
  people: [
    { user: 'bob', person: 'Bob', mine: true, gpu_hours: 2.5 },
    { user: 'site', mine: false, gpu_hours: 1 },
  ],
  days: [],
  limits: [
    { name: 'Fairshare', value: '77', lab_file: '40' },
    { user: 'bob', name: 'MaxJobs', value: '3' },
  ],
};
golden('who used how many GPU-hours', { [hoursOfAll]: { items: [hoursOf1] } }, [
  'gpu-hours alpha --days 7',
  'gpu-hours --days 7 -o csv',
]);

const storageOf1 = `GET /${in1}/storage`;
golden(
  'storage is listed by what each cluster has',
  {
    [storageOf1]: {
      items: [
        {
          clusterId: alphaId,
          clusterName: 'alpha',
          lifecycleState: 'active',
          state: 'available',
          backends: [
            {
              type: 'ceph',
              configured: 'configured',
              configuredQuotaBytes: 100 * 2 ** 30,
              purchasedRawBytes: 2 ** 40,
              ready: { status: 'True' },
            },
            { type: 'weka', configured: 'not_configured' },
          ],
        },
        {
          clusterId: gammaId,
          clusterName: 'gamma',
          lifecycleState: 'active',
          state: 'unknown',
          backends: [],
        },
      ],
    },
  },
  ['storage'],
);

const machinesOfGamma = `GET /clusters/${gammaId}/machines?${inPhysics}&limit=200`;
const optionsOfGamma = `GET /clusters/${gammaId}/options?${inPhysics}`;
const rights = 'Our credentials lack the right to list nodes.';
const unreadable = {
  ...options,
  scheduler: { ...options.scheduler, ready: { ...options.scheduler?.ready, message: rights } },
};
golden(
  'machines that the service may not read are unknown, and not none',
  { [machinesOfGamma]: { items: [] }, [optionsOfGamma]: unreadable },
  ['machines gamma'],
);

const planMembers = `POST /${in1}/members/plan`;
const restart = {
  cluster_id: alphaId,
  cluster_name: 'alpha',
  added: [],
  removed: ['bob'],
  waiting_for_key: ['cy'],
  restarts: ['login', 'compute'],
  ended_jobs: [{ id: '42', user: 'eve', name: 'train', machines: ['n1', 'n2'] }],
  other_jobs: 2,
  ended_sessions: [{ user_id: 'user_bob', username: 'bob', opened_at: '2026-01-02T03:04:05.000Z' }],
  kubernetes: [{ username: 'bob', before: 'edit', after: null }],
};
golden(
  'a plan says what a change of members would do, and writes nothing',
  {
    [planMembers]: {
      changes: [
        { change: 'remove', email: 'bob@physics.example', user_id: 'user_bob', result: 'planned' },
        {
          change: 'add',
          email: 'cy@physics.example',
          result: 'refused',
          code: 'invalid_state',
          message: 'No.',
        },
      ],
      clusters: [restart],
    },
  },
  [
    'members plan remove bob@physics.example',
    'members plan add a@x.example b@x.example --permission clusters.ssh',
  ],
);
