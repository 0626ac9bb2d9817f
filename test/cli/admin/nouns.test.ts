/** What of the operator's nouns the real service has not at hand in ../real.test.ts, as golden text. */
import { goldenText } from '../golden.ts';
import { alpha, alphaId, bob, lookups, purchase, session } from './operator-api.ts';

const golden = goldenText(['admin'], lookups);

const clusterTable = [
  'NAME   ORGANIZATION  SCHEDULER  STATE   SITE    DRIVERS           ACCESS     OBSERVED                  ID                                    FAILURE',
  'alpha  physics       sunk       active  room-1  slurm,kubernetes  converged  2026-01-02T03:04:05.000Z  7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50  -',
];
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
  'admin person password takes the first line of standard input as it is',
  { 'PUT /operator/people/user_bob/password': bob },
  [
    {
      args: ['person', 'password', 'bob@physics.example'],
      input: ' päss word \nsecond line\n',
      asks: ['PUT /operator/people/user_bob/password {"password":" päss word "}'],
      prints: [
        'EMAIL                NAME  STATE   STAFF  ID',
        'bob@physics.example  Bob   active  -      user_bob',
      ],
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
      other_public_keys: [],
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
  'admin problems and installation say what needs attention, and which keys and backups there are',
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
          kind: 'client',
          current: { id: 'SHA256:d' },
          former: { id: 'SHA256:c', until: '2026-01-31T00:00:00.000Z' },
        },
        {
          kind: 'host',
          current: { id: 'SHA256:a', until: '2026-01-31T00:00:00.000Z' },
          next: { id: 'SHA256:b', from: '2026-01-16T00:00:00.000Z' },
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
        'SINCE                     ABOUT                    URGENCY  NEXT-TRY                  PROBLEM            TO-DO',
        '2026-01-02T03:04:05.000Z  alpha slurm              urgent   2026-01-02T03:05:05.000Z  The disk is full.  Make room.',
        '-                         copy to tls://logs:6514  urgent   -                         It is away.        See that it is up.',
      ],
    },
    {
      args: ['installation'],
      asks: ['GET /operator/installation'],
      prints: [
        'KEY     STATE   ID        USED-FROM                 HOLDS-UNTIL',
        'client  in use  SHA256:d  -                         -',
        'client  former  SHA256:c  -                         2026-01-31T00:00:00.000Z',
        'host    in use  SHA256:a  -                         2026-01-31T00:00:00.000Z',
        'host    next    SHA256:b  2026-01-16T00:00:00.000Z  -',
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
