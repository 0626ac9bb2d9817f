/** Every everyday command that asks and prints, as golden text; ssh, wait and files have their own, and ../real.test.ts. */
import { alphaId } from '../admin/operator-api.ts';
import { goldenText } from '../golden.ts';
import { alpha, gammaId, inPhysics, keySet, lookups, me, membership, options, uses } from './apis.ts';

const golden = goldenText([], lookups);
const in1 = 'organizations/org_1';

const clusterTable = [
  'NAME   STATE   SCHEDULER   NODES  ORGANIZATION  SITE    ID',
  `alpha  active  sunk        2      physics       room-1  ${alphaId}`,
  `gamma  active  kubernetes  2      physics       room-1  ${gammaId}`,
];
const details = [
  'Name             alpha',
  `ID               ${alphaId}`,
  'Organization     physics',
  'Site             Machine room 1',
  'State            active',
  'Reports          available',
  'Observed         2026-01-02T03:04:05.000Z',
  'Scheduler        sunk',
  'Scheduler ready  no, NodesDown: node-2 is down',
  'Storage          ceph',
  'Storage quota    1.5TiB',
  'Storage ready    yes',
  'Nodes            2 of 4',
  'GPUs             3 of 16 GPUs free; out of work: node-2 (bad fan)',
  'Kubernetes       1.33.1',
];
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
  [
    { args: ['clusters', 'list'], prints: clusterTable },
    { args: ['clusters', 'list', '--org', 'physics'], prints: clusterTable },
    { args: ['clusters', 'list', '--org', 'org_1'], prints: clusterTable },
    { args: ['clusters', 'show', 'alpha'], asks: [optionsOfAlpha, usageOfAlpha], prints: details },
  ],
);

const pending = {
  state: 'pending',
  reason: 'applying',
  granted: true,
  next: 'service',
  message: 'Sending your permissions to gamma.',
} as const;
const accessTable = [
  'CLUSTER  WAY         STATE    NEXT     UNTIL  TYPE                       WHAT',
  'alpha    ssh         ready    -        -      andromeda ssh alpha        It works.',
  'alpha    kubernetes  none     -        -      -                          There is none.',
  'gamma    ssh         none     -        -      -                          There is none.',
  'gamma    kubernetes  pending  service  -      andromeda wait permission  Sending your permissions to gamma.',
];
golden(
  'what the caller can do is shown for each cluster and way',
  { 'GET /me/access': uses({ kubernetes: pending }) },
  [
    { args: ['access'], asks: ['GET /me/access'], prints: accessTable },
    {
      args: ['access', 'show', 'gamma'],
      asks: ['GET /me/access'],
      prints: [accessTable[0] ?? '', ...accessTable.slice(3)],
    },
  ],
);

golden(
  'what the service wants a person to know is said once, apart from what was asked for',
  {
    'GET /me': { ...me, notices: ['Your access lapses.', 'A key lapses.'] },
    'GET /me/access': uses({ kubernetes: pending }),
  },
  [
    {
      args: ['clusters', 'list'],
      prints: clusterTable,
      says: 'Note: Your access lapses.\nNote: A key lapses.',
    },
  ],
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
  [
    {
      args: ['keys', 'list'],
      asks: ['GET /me/ssh-keys'],
      prints: [
        'FINGERPRINT  STATE   CREATED                   REVOKED  ID                                  ADDED_FROM  USED                      USED_FROM  LABEL',
        'SHA256:new   lapsed  2026-01-02T03:04:05.000Z  -        ssh_key_01J8Z3XK5T7Q2M4N6P8R0S1V3X  -           never                     -          -',
        'SHA256:new   active  2026-01-02T03:04:05.000Z  -        ssh_key_2                           -           never                     -          old laptop',
        'SHA256:new   active  2026-01-02T03:04:05.000Z  -        ssh_key_3                           192.0.2.9   2999-01-02T03:04:05.000Z  192.0.2.7  -',
      ],
      says: `Since 2026-01-02T03:04:05.000Z one of these keys lets you in no more; \`andromeda keys add FILE\` registers another one.
old laptop was never used. \`andromeda keys revoke KEY\` revokes a key that you do not need.`,
    },
  ],
);

golden(
  'clusters come page by page',
  {
    [`GET /clusters?${inPhysics}&limit=200`]: { items: [alpha], nextPageToken: 'a b' },
    [`GET /clusters?${inPhysics}&limit=200&after=a+b`]: { items: [{ ...alpha, id: gammaId }] },
  },
  [
    {
      args: ['clusters', 'list'],
      asks: [`GET /clusters?${inPhysics}&limit=200&after=a+b`],
      prints: clusterTable.map((line) => line.replace('gamma', 'alpha')),
    },
  ],
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
  [
    {
      args: ['machines', 'alpha'],
      asks: [machinesOfAlpha, `${machinesOfAlpha}&after=n`, usageOfAlpha],
      prints: [
        'NAME    STATE     READY  PHASE  GPUS  IN-USE  MODEL  CORES  MEMORY-GIB  REASON   ID',
        `node-1  admitted  yes    idle   8     5       H100   96     1024        -        ${machine.id}`,
        `node-2  admitted  -      stale  8     -       H100   96     1024        -        ${node2}`,
        `node-3  admitted  -      -      -     -       -      -      -           bad fan  ${node3}`,
      ],
      says: '3 of 16 GPUs free, 8 unknown.',
    },
  ],
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
const jobLines = [
  'CLUSTER  JOB     NAME   USER  STATE                         NODES          GPUS  START                     END',
  'alpha    4711_3  train  bob   running                       node-1,node-2  11    2026-01-02T03:00:00.000Z  -',
  'alpha    13      next   bob   pending (Resources), 0 ahead  -              8     2026-01-02T04:00:00.000Z  -',
];
const unseen = 'Not shown: jobs of others (2, with GPUs: 0, and 1 that wait).';
golden('who runs what, and which GPUs are free', { [usageOfAll]: { items: [usageOf1] } }, [
  { args: ['jobs', 'alpha'], asks: [usageOfAll], prints: jobLines },
  {
    args: ['jobs', 'alpha', '--all'],
    asks: [usageOfAll],
    prints: [
      'CLUSTER  JOB     NAME     USER  STATE                         NODES          GPUS  START                     END',
      'alpha    4711_3  train    bob   running                       node-1,node-2  11    2026-01-02T03:00:00.000Z  -',
      'alpha    12      prepare  site  running                       node-2         0     -                         -',
      'alpha    13      next     bob   pending (Resources), 0 ahead  -              8     2026-01-02T04:00:00.000Z  -',
    ],
    says: unseen,
  },
  {
    args: ['gpus', 'alpha'],
    asks: [usageOfAll],
    prints: [
      'CLUSTER  GPUS  FREE  FREE-NODES  BIGGEST-BLOCK  IN-USE  UNAVAILABLE  UNKNOWN  OBSERVED',
      'alpha    16    5     0           5              11      0            0        2026-01-02T03:04:05.000Z',
      '',
      ...jobLines,
      '',
      'CLUSTER  NAMESPACE  POD       NODE    GPUS',
      'alpha    team       notebook  node-2  1',
    ],
    says: `5 of 16 GPUs free: no whole nodes, at most 5 on one. ${unseen}`,
  },
]);
const silent = {
  ...usageOf1,
  pending_jobs: undefined,
  jobs: undefined,
  other_jobs: undefined,
  scheduler: 'sunk',
};
golden('what is not known to run is not said to be nothing', { [usageOfAll]: { items: [silent] } }, [
  {
    args: ['jobs', 'alpha'],
    asks: [usageOfAll],
    prints: [],
    says: 'Which jobs run on alpha is not known at the moment.',
  },
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
  {
    args: ['gpu-hours', 'alpha', '--days', '7'],
    asks: [hoursOfAll],
    prints: [
      'CLUSTER  USER  PERSON  GPU-HOURS',
      'alpha    bob   Bob     2.50',
      'alpha    site  -       1.00',
      '',
      'CLUSTER  OF       LIMIT      VALUE  LAB-FILE',
      'alpha    account  Fairshare  77     40',
      'alpha    bob      MaxJobs    3      -',
    ],
    says: "alpha: 3.50, of members 2.50, since 2026-01-01, by Slurm's accounting.",
  },
  {
    args: ['gpu-hours', '--days', '7', '-o', 'csv'],
    asks: [hoursOfAll],
    prints: ['"cluster","user","person","gpu_hours"', '"alpha","bob","Bob","2.5"', '"alpha","site","","1"'],
  },
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
  [
    {
      args: ['storage'],
      asks: [storageOf1],
      prints: [
        'CLUSTER  STATE      TYPE  CONFIGURED  QUOTA   PURCHASED  READY',
        'alpha    available  ceph  configured  100GiB  1TiB       yes',
        'gamma    unknown    -     -           -       -          -',
      ],
    },
  ],
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
  [
    {
      args: ['machines', 'gamma'],
      asks: [machinesOfGamma, optionsOfGamma],
      prints: [],
      says: `No machines are known; the cluster reports: ${rights}`,
    },
  ],
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
const planText = [
  'CHANGE  EMAIL                USERNAME  RESULT   WHY',
  'remove  bob@physics.example  -         planned  -',
  'add     cy@physics.example   -         refused  No.',
  '',
  'On cluster alpha:',
  '  Login accounts that go: bob.',
  '  Restarts, in this order: login nodes, then compute nodes one at a time.',
  '  Running jobs that end:',
  '    JOB  USER  NAME   MACHINES',
  '    42   eve   train  n1,n2',
  '  Running jobs that end, further: 2.',
  '  Get a login account when they register a key: cy.',
  '  Open SSH sessions that end: 1 (bob).',
  '  Kubernetes: bob from edit to none.',
];
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
    {
      args: ['members', 'plan', 'remove', membership.email],
      asks: [`${planMembers} {"changes":[{"change":"remove","user_id":"user_bob"}]}`],
      prints: planText,
    },
    {
      args: ['members', 'plan', 'add', 'a@x.example', 'b@x.example', '--permission', 'clusters.ssh'],
      asks: [
        `${planMembers} {"changes":[{"change":"add","email":"a@x.example","permissions":["clusters.ssh"]},{"change":"add","email":"b@x.example","permissions":["clusters.ssh"]}]}`,
      ],
      prints: planText,
    },
  ],
);
