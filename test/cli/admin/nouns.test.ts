/** Every noun and verb: what it prints, on the real API; on a made-up one where that has not such an answer at hand. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { beta, eventually, startTestApp } from '../../support/app.ts';
import { goldenText } from '../golden.ts';
import { createMachine, sessionAt } from '../harness.ts';
import { alpha, alphaId, bob, lookups, purchase, session } from './operator-api.ts';

const app = await startTestApp();
after(() => app[Symbol.asyncDispose]());

/** Compares what commands print to an operator; IDs, times and widths differ from run to run. */
async function operator(t: TestContext) {
  const machine = await createMachine(t);
  const accessToken = await app.issuer.token('root');
  await machine.writeProfile([sessionAt(app.businessUrl, { accessToken })]);
  const run = (args: string) => machine.run(['admin', ...args.split(' ')]);
  const prints = async (args: string, expected: string[], says = '') => {
    const { status, stdout, stderr } = await run(args);
    const plain = stdout
      .replace(/(user|org|grant)_\w{26}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replace(/ {2,}/g, '  ');
    const lines = expected.map((line) => `${line}\n`).join('');
    assert.deepEqual([stderr, plain, status], [says && `${says}\n`, lines, 0]);
    return stdout;
  };
  return { run, prints };
}

test('admin organization lists, adds, renames, sets domains and retires', async (t) => {
  const { prints } = await operator(t);
  const heading = 'SLUG  NAME  DOMAINS  MEMBERS  CLUSTERS  ID';
  const row = (name: string, domains: string) => [heading, `biology  ${name}  ${domains}  1  0  ID`];
  await prints(
    'organization add biology --name Biology --owner dora@biology.example --owner-username dora --domain biology.example --domain lab.example',
    row('Biology', 'biology.example,lab.example'),
  );
  await prints('organization rename biology Life', row('Life', 'biology.example,lab.example'));
  await prints('organization domains biology a.example b.example', row('Life', 'a.example,b.example'));
  await prints('organization domains biology --none', row('Life', '-'));
  await prints('organization list', [
    heading,
    'physics  Physics  -  3  2  ID',
    'chemistry  Chemistry  chemistry.example  1  0  ID',
    'biology  Life  -  1  0  ID',
  ]);
  await prints('organization retire biology', [], 'biology is retired.');
});

test('admin person lists, adds, sets staff keys and the address, deactivates, reactivates and erases', async (t) => {
  const { prints } = await operator(t);
  const row = (name: string, state = 'active', staff = '-') => [
    'EMAIL  NAME  STATE  STAFF  ID',
    `${name}@x.example  Zoe  ${state}  ${staff}  ID`,
  ];
  await prints('person add zoe@x.example --name Zoe --staff staff.read', row('zoe', 'active', 'staff.read'));
  const staff = row('zoe', 'active', 'staff.audit,staff.read');
  const found = await prints('person staff Zoe@X.example staff.read staff.audit', staff);
  await prints('person list --email zoe@x.example', staff);
  await prints(`person staff ${/user_\w+/.exec(found)} --none`, row('zoe'));
  await prints('person email zoe@x.example zoey@x.example', row('zoey'));
  await prints('person deactivate zoey@x.example', row('zoey', 'deactivated'));
  await prints('person reactivate zoey@x.example', row('zoey'));
});

test('admin person shows the identities that a person signs in with, and binds the account anew', async (t) => {
  const { prints } = await operator(t);
  assert.equal((await app.business('/me', { as: 'bob' })).status, 200);
  const row = (issuer: string, subject: string) => ['ISSUER  SUBJECT  SINCE', `${issuer}  ${subject}  TIME`];
  const none =
    'There are no identities: the next sign-in with the verified address gets the account, unless unbound.';
  await prints('person identities bob@physics.example', row(app.issuer.url, 'subject-bob'));
  await prints('person rebind bob@physics.example', [], none);
  const bound = row('https://new.example', '8');
  await prints('person rebind bob@physics.example --issuer https://new.example --subject 8', bound);
  await prints('person identities bob@physics.example', bound);
  await prints(
    'person unbind bob@physics.example',
    [],
    `8 at https://new.example is unbound. \`andromeda admin person rebind EMAIL --issuer https://new.example\` lets it in again.\n${none}`,
  );
});

test('admin machine admits and quarantines the machines of a cluster, by name or ID', async (t) => {
  const { prints, run } = await operator(t);
  const list = () => run('machine list --cluster beta');
  await eventually(list, ({ stdout }) => / yes +idle /.test(stdout));
  const row = (state: string) => [
    'NAME  STATE  READY  PHASE  GPUS  IN-USE  MODEL  CORES  MEMORY-GIB  REASON  ID',
    `beta-1  ${state}  yes  idle  8  0  -  -  -  -  ID`,
  ];
  const found = await prints('machine quarantine beta-1 --cluster beta', row('quarantined'));
  const [id] = /[0-9a-f-]{36}/.exec(found) ?? [];
  await prints(`machine admit ${id} --cluster ${beta.slice(0, 8)}`, row('admitted'));
});

test('admin grant lists, adds and revokes', async (t) => {
  const { prints } = await operator(t);
  await prints('grant list', [], 'There are no grants.');
  const row = [
    'PERSON  CLUSTER  RELATION  NAMESPACE  ROLE  EXPIRES  ID',
    'eve@elsewhere.example  beta  kubernetes.developer  team-a  trainers  TIME  ID',
  ];
  const on = 'grant add eve@elsewhere.example --cluster beta';
  const more = '--relation kubernetes.developer --namespace team-a --role-id trainers --expires 2099-01-01';
  const added = await prints(`${on} ${more}`, row);
  assert.match(added, / 2099-01-01T00:00:00/);
  await prints('grant list', row);
  await prints(`grant revoke ${/grant_\w+/.exec(added)}`, row);
});

test('admin cluster adds and releases; a cluster is a name, an ID or the beginning of an ID', async (t) => {
  const { prints, run } = await operator(t);
  const added = await prints(
    'cluster add gamma --organization=physics --scheduler=kubernetes --site-id=room-1 --site-name=Room --simulated=2x8',
    [
      'NAME  ORGANIZATION  SCHEDULER  STATE  SITE  DRIVERS  ACCESS  OBSERVED  ID  FAILURE',
      'gamma  physics  kubernetes  provisioning  room-1  simulated  -  -  ID  -',
    ],
  );
  const [id = ''] = /[0-9a-f-]{36}/.exec(added) ?? [];
  const { status, stdout, stderr } = await run(`cluster release ${id.slice(0, 8)} --yes`);
  assert.deepEqual([stderr, status], ['', 0]);
  assert.match(stdout, /\ngamma +physics +kubernetes +releas(ing|ed) +room-1 /);
});

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
