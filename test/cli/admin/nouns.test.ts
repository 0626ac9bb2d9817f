/** Every noun and verb: what it asks of the API, and what it prints, as golden text. */
import { goldenText } from '../golden.ts';
import { alpha, alphaId, bob, grant, lookups, machine, physics, purchase, session } from './operator-api.ts';

const golden = goldenText(['admin'], lookups);

const organizationTable = [
  'SLUG     NAME     DOMAINS                      MEMBERS  CLUSTERS  ID',
  'physics  Physics  physics.example,lab.example  2        1         org_1',
];
golden(
  'admin organization lists, adds, renames, sets domains and retires',
  {
    'POST /operator/organizations': physics,
    'PUT /operator/organizations/org_1': physics,
    'POST /organizations/org_1/retire': physics.organization,
  },
  [
    { args: ['organization', 'list'], prints: organizationTable },
    {
      args: [
        'organization',
        'add',
        'physics',
        '--name',
        'Physics',
        '--owner',
        'ada@physics.example',
        '--owner-username',
        'ada',
        '--domain',
        'physics.example',
        '--domain',
        'lab.example',
      ],
      asks: [
        'POST /operator/organizations {"slug":"physics","display_name":"Physics","owner_email":"ada@physics.example","owner_username":"ada","auto_join_domains":["physics.example","lab.example"]}',
      ],
      prints: organizationTable,
    },
    {
      args: ['organization', 'rename', 'physics', 'Physics II'],
      asks: ['PUT /operator/organizations/org_1 {"display_name":"Physics II"}'],
      prints: organizationTable,
    },
    {
      args: ['organization', 'domains', 'physics', 'a.example', 'b.example'],
      asks: ['PUT /operator/organizations/org_1 {"auto_join_domains":["a.example","b.example"]}'],
      prints: organizationTable,
    },
    {
      args: ['organization', 'domains', 'physics', '--none'],
      asks: ['PUT /operator/organizations/org_1 {"auto_join_domains":[]}'],
      prints: organizationTable,
    },
    {
      args: ['organization', 'retire', 'physics'],
      asks: ['POST /organizations/org_1/retire'],
      prints: [],
      says: 'physics is retired.',
    },
  ],
);

const personTable = [
  'EMAIL                NAME  STATE   STAFF  ID',
  'bob@physics.example  Bob   active  -      user_bob',
];
const identity = { issuer: 'https://login.example', subject: '7', created_at: '2026-01-02T03:04:05.000Z' };
const identityTable = [
  'ISSUER                 SUBJECT  SINCE',
  'https://login.example  7        2026-01-02T03:04:05.000Z',
];
golden(
  'admin person shows the identities that a person signs in with, and binds the account anew',
  {
    'GET /operator/people/user_bob/identities': { identities: [identity] },
    'PUT /operator/people/user_bob/identities': { identities: [identity] },
  },
  [
    {
      args: ['person', 'identities', 'bob@physics.example'],
      asks: ['GET /operator/people/user_bob/identities'],
      prints: identityTable,
    },
    {
      args: ['person', 'rebind', 'bob@physics.example'],
      asks: [
        'GET /operator/people/user_bob/identities',
        'PUT /operator/people/user_bob/identities {"issuer":"https://login.example"}',
      ],
      prints: identityTable,
    },
    {
      args: ['person', 'rebind', 'user_bob', '--issuer', 'https://new.example', '--subject', '8'],
      asks: ['PUT /operator/people/user_bob/identities {"issuer":"https://new.example","subject":"8"}'],
      prints: identityTable,
    },
  ],
);

golden(
  'admin person lists, adds, sets staff keys and passwords, deactivates and reactivates',
  {
    'POST /operator/people': bob,
    'PUT /operator/people/user_bob/staff-keys': bob,
    'PUT /operator/people/user_bob/password': bob,
    'POST /operator/people/user_bob/deactivate': bob,
    'POST /operator/people/user_bob/reactivate': bob,
  },
  [
    { args: ['person', 'list'], prints: personTable },
    { args: ['person', 'list', '--email', 'bob@physics.example'], prints: personTable },
    {
      args: ['person', 'add', 'bob@physics.example', '--name', 'Bob', '--staff', 'staff.read'],
      asks: [
        'POST /operator/people {"email":"bob@physics.example","name":"Bob","staff_keys":["staff.read"]}',
      ],
      prints: personTable,
    },
    {
      args: ['person', 'staff', 'Bob@Physics.example', 'staff.read', 'staff.audit'],
      asks: ['PUT /operator/people/user_bob/staff-keys {"staff_keys":["staff.read","staff.audit"]}'],
      prints: personTable,
    },
    {
      args: ['person', 'staff', 'user_bob', '--none'],
      asks: ['PUT /operator/people/user_bob/staff-keys {"staff_keys":[]}'],
      prints: personTable,
    },
    {
      args: ['person', 'password', 'bob@physics.example'],
      input: ' päss word \nsecond line\n',
      asks: ['PUT /operator/people/user_bob/password {"password":" päss word "}'],
      prints: personTable,
    },
    {
      args: ['person', 'deactivate', 'bob@physics.example'],
      asks: ['POST /operator/people/user_bob/deactivate'],
      prints: personTable,
    },
    {
      args: ['person', 'reactivate', 'bob@physics.example'],
      asks: ['POST /operator/people/user_bob/reactivate'],
      prints: personTable,
    },
  ],
);

const clusterTable = [
  'NAME   ORGANIZATION  SCHEDULER  STATE   SITE    DRIVERS           ACCESS     OBSERVED                  ID                                    FAILURE',
  'alpha  physics       sunk       active  room-1  slurm,kubernetes  converged  2026-01-02T03:04:05.000Z  7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50  -',
];
golden(
  'admin cluster lists, adds and releases; a cluster is a name, an ID or the beginning of an ID',
  { 'POST /operator/clusters': alpha, [`POST /operator/clusters/${alphaId}/release`]: alpha },
  [
    { args: ['cluster', 'list'], prints: clusterTable },
    {
      args: [
        'cluster',
        'add',
        'alpha',
        '--organization=physics',
        '--scheduler=sunk',
        '--site-id=room-1',
        '--site-name=Machine room 1',
        '--simulated=2x8',
      ],
      asks: [
        'POST /operator/clusters {"name":"alpha","organization":"physics","scheduler":"sunk","site":{"id":"room-1","name":"Machine room 1"},"simulated":{"computeNodes":2,"gpusPerNode":8}}',
      ],
      prints: clusterTable,
    },
    {
      args: ['cluster', 'release', 'alpha', '--yes'],
      asks: [`POST /operator/clusters/${alphaId}/release`],
      prints: clusterTable,
    },
    {
      args: ['cluster', 'release', alphaId.slice(0, 8), '--yes'],
      asks: [`POST /operator/clusters/${alphaId}/release`],
      prints: clusterTable,
    },
  ],
);

const abandoned = {
  ...alpha,
  cluster: { ...alpha.cluster, cleanup_state: 'abandoned; left behind: the account ada' },
};
golden(
  'admin cluster release --abandon does not wait, and names what is left there',
  { [`POST /operator/clusters/${alphaId}/release?abandon=true`]: abandoned },
  [
    {
      args: ['cluster', 'release', 'alpha', '--yes', '--abandon'],
      asks: [`POST /operator/clusters/${alphaId}/release?abandon=true`],
      prints: clusterTable,
      says: 'alpha: abandoned; left behind: the account ada.',
    },
  ],
);

const machineTable = [
  'NAME    STATE       READY  PHASE  GPUS  IN-USE  MODEL      CORES  MEMORY-GIB  REASON  ID',
  'node-1  registered  yes    idle   8     -       H100 80GB  96     1024        -       11111111-3c39-4a8e-9a55-0d1c2b3a4f50',
];
golden(
  'admin machine lists, admits and quarantines the machines of a cluster',
  {
    [`POST /operator/machines/${machine.id}/admit`]: machine,
    [`POST /operator/machines/${machine.id}/quarantine`]: machine,
  },
  [
    { args: ['machine', 'list', '--cluster', 'alpha'], prints: machineTable },
    {
      args: ['machine', 'admit', 'node-1', '--cluster', 'alpha'],
      asks: [`POST /operator/machines/${machine.id}/admit`],
      prints: machineTable,
    },
    {
      args: ['machine', 'quarantine', machine.id, '--cluster', alphaId],
      asks: [`POST /operator/machines/${machine.id}/quarantine`],
      prints: machineTable,
    },
  ],
);

const grantTable = [
  'PERSON                 CLUSTER  RELATION              NAMESPACE  ROLE  EXPIRES  ID',
  'eve@elsewhere.example  alpha    kubernetes.developer  team-a     -     -        grant_1',
];
golden(
  'admin grant lists, adds and revokes',
  {
    'GET /operator/grants': { grants: [grant] },
    'POST /operator/grants': grant,
    'POST /operator/grants/grant_1/revoke': grant,
  },
  [
    { args: ['grant', 'list'], asks: ['GET /operator/grants'], prints: grantTable },
    {
      args: [
        'grant',
        'add',
        'eve@elsewhere.example',
        '--cluster=alpha',
        '--relation=kubernetes.developer',
        '--namespace=team-a',
        '--role-id=trainers',
        '--expires=2030-01-01',
      ],
      asks: [
        `POST /operator/grants {"email":"eve@elsewhere.example","expires_at":"2030-01-01T00:00:00.000Z","cluster_id":"${alphaId}","relation":"kubernetes.developer","scope":"team-a","role_id":"trainers"}`,
      ],
      prints: grantTable,
    },
    {
      args: [
        'grant',
        'add',
        'eve@elsewhere.example',
        '--cluster=alpha',
        '--relation=kubernetes.viewer',
        '--role-id=edit',
        '--allow-wider-role',
      ],
      asks: [
        `POST /operator/grants {"email":"eve@elsewhere.example","cluster_id":"${alphaId}","relation":"kubernetes.viewer","role_id":"edit","allow_wider_role":true}`,
      ],
      prints: grantTable,
    },
    {
      args: ['grant', 'revoke', 'grant_1'],
      asks: ['POST /operator/grants/grant_1/revoke'],
      prints: grantTable,
    },
  ],
);

const purchaseTable = [
  'STATE      TYPE  BYTES          CLUSTER                               ORGANIZATION  CREATED                   ID',
  'requested  ceph  1099511627776  7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50  org_1         2026-01-02T03:04:05.000Z  purchase_1',
];
const sessionTable = [
  'LOGIN                                     FROM            NODE    OPENED                    CHANNELS  UP  DOWN  ID',
  '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50.bob  10.0.0.7:50123  login1  2026-01-02T03:04:05.000Z  1         10  20    session_1',
];
golden(
  'admin purchase and session list, and change one by its ID',
  {
    'GET /operator/purchases': { purchases: [purchase] },
    'POST /operator/purchases/purchase_1/accept': purchase,
    'POST /operator/purchases/purchase_1/decline': purchase,
    'GET /operator/sessions': { sessions: [session] },
    'POST /operator/sessions/session_1/close': session,
  },
  [
    { args: ['purchase', 'list'], asks: ['GET /operator/purchases'], prints: purchaseTable },
    {
      args: ['purchase', 'accept', 'purchase_1'],
      asks: ['POST /operator/purchases/purchase_1/accept'],
      prints: purchaseTable,
    },
    {
      args: ['purchase', 'decline', 'purchase_1'],
      asks: ['POST /operator/purchases/purchase_1/decline'],
      prints: purchaseTable,
    },
    { args: ['session', 'list'], asks: ['GET /operator/sessions'], prints: sessionTable },
    {
      args: ['session', 'close', 'session_1'],
      asks: ['POST /operator/sessions/session_1/close'],
      prints: sessionTable,
    },
  ],
);

golden(
  "admin gateway key prints the gateway's public key: exactly one line",
  {
    'GET /operator/gateway': {
      hostname: 'h',
      port: 22,
      host_key: 'ssh-ed25519 A',
      public_key: 'ssh-ed25519 AAAA gateway\n',
    },
  },
  [{ args: ['gateway', 'key'], asks: ['GET /operator/gateway'], prints: ['ssh-ed25519 AAAA gateway'] }],
);

const problem = {
  area: 'cluster',
  about: 'alpha',
  side: 'slurm',
  urgency: 'now',
  since: '2026-01-02T03:04:05.000Z',
  message: 'The disk is full.',
  action: 'Make room.',
  next_try_at: '2026-01-02T03:05:05.000Z',
};
golden(
  'admin problems and installation say what must be mended, and which keys and backups there are',
  {
    'GET /operator/problems': {
      problems: [
        problem,
        {
          area: 'audit',
          about: 'copy to tls://logs:6514',
          urgency: 'now',
          message: 'It is away.',
          action: 'See that it is up.',
        },
      ],
    },
    'GET /operator/installation': {
      keys: [
        {
          kind: 'host',
          current: { id: 'SHA256:a', since: '2026-01-01T00:00:00.000Z' },
          next: { id: 'SHA256:b' },
          next_step: { command: 'andromeda admin key switch host', advice: 'When …' },
        },
      ],
      backup: {
        last: { at: '2026-01-01T00:00:00.000Z', file: '/b/one', bytes: 5 },
        drill: { at: '2026-01-02T00:00:00.000Z', file: '/b/one', good: false },
      },
    },
  },
  [
    {
      args: ['problems'],
      asks: ['GET /operator/problems'],
      prints: [
        'SINCE                     ABOUT                    WHEN  NEXT-TRY                  PROBLEM            TO-DO',
        '2026-01-02T03:04:05.000Z  alpha slurm              now   2026-01-02T03:05:05.000Z  The disk is full.  Make room.',
        '-                         copy to tls://logs:6514  now   -                         It is away.        See that it is up.',
      ],
    },
    {
      args: ['installation'],
      asks: ['GET /operator/installation'],
      prints: [
        'KEY   STATE      ID                               SINCE',
        'host  in use     SHA256:a                         2026-01-01T00:00:00.000Z',
        'host  announced  SHA256:b                         -',
        'host  next step  andromeda admin key switch host  -',
        '',
        'Backups to          none by themselves',
        'Last                2026-01-01T00:00:00.000Z  /b/one',
        'Kept and read back  -',
        'Next due            -',
        'Failed              -',
        'Rehearsed           2026-01-02T00:00:00.000Z  /b/one, and it was not good',
      ],
    },
  ],
);

golden(
  'a list of nothing prints nothing, and says so on stderr',
  { 'GET /operator/grants': { grants: [] }, 'GET /operator/sessions': { sessions: [] } },
  [
    { args: ['grant', 'list'], asks: ['GET /operator/grants'], prints: [], says: 'There are no grants.' },
    {
      args: ['session', 'list'],
      asks: ['GET /operator/sessions'],
      prints: [],
      says: 'There are no open sessions.',
    },
  ],
);
