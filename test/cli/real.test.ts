/** Commands that ask and print, against the real service: every noun of the operator, and what members do every day. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { reviewMembers } from '../../src/store/audit/member-reviews.ts';
import { becomes, beta, eventually, startTestApp } from '../support/app.ts';
import { keygenFingerprint, newPublicKey } from '../support/ssh-keys.ts';
import { createMachine, says, sessionAt } from './harness.ts';

const app = await startTestApp();
after(() => app[Symbol.asyncDispose]());

/** Signs `name` in. IDs, times and widths of what their commands print differ from run to run, and are not compared. */
async function person(t: TestContext, name: string, prefix: string[] = []) {
  const machine = await createMachine(t);
  const { businessUrl, issuer, platformUrl } = app;
  const accessToken = await issuer.token(name);
  await machine.writeProfile([sessionAt(platformUrl, { businessUrl, issuer: issuer.url, accessToken })]);
  const run = (args: string, input = '') => machine.run([...prefix, ...args.split(' ')], { input });
  /** Runs a command that prints this and says that on stderr; returns what it printed. */
  const prints = async (args: string, expected: string[], says = '', input = '') => {
    const { status, stdout, stderr } = await run(args, input);
    const plain = stdout
      .replace(/(user|org|grant|ssh_key)_\w{26}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replace(/ {2,}/g, '  ');
    const lines = expected.map((line) => `${line}\n`).join('');
    assert.deepEqual([stderr, plain, status], [says && `${says}\n`, lines, 0]);
    return stdout;
  };
  return { run, prints };
}

const operator = (t: TestContext) => person(t, 'root', ['admin']);

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
  const { prints, run } = await operator(t);
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
  const { status, stdout, stderr } = await run('person password zoey@x.example', 'secret\n');
  assert.deepEqual([status, stdout], [6, '']);
  assert.match(stderr, /another issuer.*\n$/);
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
  // Of the minute after an unbinding no token of theirs counts: the issuer's clock may be ahead.
  app.advance(61_000);
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
      'NAME  ORGANIZATION  SCHEDULER  STATE  SITE  DRIVERS  ACCESS  OBSERVED  ID  DIRECT  FAILURE',
      'gamma  physics  kubernetes  provisioning  room-1  simulated  -  -  ID  -  -',
    ],
  );
  const [id = ''] = /[0-9a-f-]{36}/.exec(added) ?? [];
  const inState = (state: string) =>
    eventually(
      () => run('cluster list'),
      ({ stdout }) => new RegExp(`\\ngamma +physics +kubernetes +${state} +room-1 +simulated `).test(stdout),
    );
  await inState('active');
  assert.equal((await run('cluster release gamma')).status, 2, 'it has to be meant');
  await says(run(`cluster release ${id.slice(0, 8)} --yes`), 0, '');
  await inState('released');
});

test('keys are listed, added, named and revoked by fingerprint, label or ID', async (t) => {
  const { prints } = await person(t, 'bob');
  const publicKey = newPublicKey();
  const fingerprint = keygenFingerprint(publicKey);
  const row = (state: string, revoked: string, label = 'bob@laptop') => [
    'FINGERPRINT  STATE  CREATED  REVOKED  ID  ADDED_FROM  USED  USED_FROM  LABEL',
    `${fingerprint}  ${state}  TIME  ${revoked}  ID  127.0.0.1  never  -  ${label}`,
  ];
  const then = 'The clusters get the change now; `andromeda wait key` ends when they have it.';
  const plan = (accounts: string) => `On cluster alpha:
  ${accounts}: bob.
  Restarts, in this order: login nodes, then Slurm controller, then accounting service, then compute nodes one at a time.
  No running job ends.
${then}`;
  const says = plan('New login accounts');
  const added = await prints('keys add -', row('active', '-'), says, `${publicKey} bob@laptop\n`);
  await prints('keys list', row('active', '-'));
  await prints(`keys rename ${fingerprint} old-laptop`, row('active', '-', 'old-laptop'));
  const gone = row('revoked', 'TIME', 'old-laptop');
  await prints('keys revoke old-laptop', gone, plan('Login accounts that go'));
  await prints(`keys revoke ${/ssh_key_\w+/.exec(added)}`, gone, then);
});

test('shell set says what is set, and how to see it arrive', async (t) => {
  const { prints, run } = await person(t, 'bob');
  const says = 'It is in place everywhere once `andromeda wait key` has ended.';
  await prints('shell set /bin/sh', ['Your login shell is /bin/sh.'], says);
  assert.equal(JSON.parse((await run('shell set /bin/sh -o json')).stdout).shell, '/bin/sh');
});

const heading = 'EMAIL  ROLE  USERNAME  ID';
test('owners and admins list, add and remove members, and set roles, without being staff', async (t) => {
  const { prints } = await person(t, 'ada');
  const members = ['ada', 'bob', 'eve'].map(
    (name) => `${name}@physics.example  ${name === 'ada' ? 'owner' : 'member'}  ${name}`,
  );
  await prints('members list', [heading, ...members.map((row) => `${row}  ID`)]);
  await prints('members list --permissions', [
    'EMAIL  ROLE  USERNAME  PERMISSIONS  ID',
    `${members[0]}  organization.owner  ID`,
    `${members[1]}  clusters.read,clusters.ssh  ID`,
    `${members[2]}  -  ID`,
  ]);
  const row = (role: string) => [heading, `cy@physics.example  ${role}  cy  ID`];
  const added = 'members add cy@physics.example --username cy --permission=clusters.read';
  await prints(added, row('member'));
  await prints('members role cy@physics.example admin', row('admin'));
  const says = 'cy@physics.example is no longer a member of physics.';
  await prints('members remove cy@physics.example', [], says);
});

test('a member is shown with their permissions, and what they reach on each cluster by which way', async (t) => {
  const { prints, run } = await person(t, 'ada');
  await prints('members show bob@physics.example', [
    ...['ROLE  PERMISSIONS  ID', 'member  clusters.read,clusters.ssh  ID', ''],
    ...['CLUSTER  KUBERNETES  MESSAGE', 'beta  none  -'],
  ]);
  const access = 'members access bob@physics.example';
  await becomes(async () => / waiting_for_key,applied /.test((await run(access)).stdout), true);
  await prints(access, [
    'EMAIL  CLUSTER  OPENS  BY  UNTIL  SLURM  KUBERNETES',
    'bob@physics.example  alpha  see,ssh  clusters.read,clusters.ssh  -  waiting_for_key,applied  -',
    'bob@physics.example  beta  see  clusters.read  -  -  none',
  ]);
  await prints('members grants', [], 'There are no grants on clusters of the organization.');
});

test('who had access at a time is a table, CSV or JSON', async (t) => {
  const { run } = await person(t, 'ada');
  const at = new Date().toISOString();
  const table = await run(`members access --at ${at}`);
  assert.equal(table.status, 0, table.stderr);
  assert.match(table.stdout, /^EMAIL +NAME +ROLE +USERNAME +PERMISSIONS +GRANTS\n/);
  assert.match(table.stdout, /^bob@physics\.example +\S+ +member +bob +clusters\.read,clusters\.ssh +-$/m);
  const csv = await run(`members access --at ${at} -o csv`);
  assert.match(csv.stdout, /^"address","name","role","user name","member since","permissions","grants"\n/);
  assert.match(
    csv.stdout,
    /^"bob@physics\.example",\S+,"member","bob",\S+,"clusters\.read clusters\.ssh",""$/m,
  );
  const { people } = JSON.parse((await run(`members access --at ${at} -o json`)).stdout);
  assert.ok(people.length >= 3);
  const early = await run('members access --at 2001-01-01');
  assert.equal(early.status, 1);
  assert.match(early.stderr, /Who had access is known from \S+ on, not before/);
  const both = await run(`members access bob@physics.example --at ${at}`);
  assert.match(both.stderr, /--at shows everyone; leave the addresses out/);
});

test('members whose access a review ends are listed, and kept with grant', async (t) => {
  const { run, prints } = await person(t, 'ada');
  await prints('members review', [], 'No access ends for want of a review.');
  const { store } = app.app;
  await store.write(({ db }) =>
    db.updateTable('memberships').set({ review_from: '2020-01-01T00:00:00.000Z' }).execute(),
  );
  await reviewMembers(store, 6, { now: Date.now(), stopping: new AbortController().signal });
  const csv = await run('members review -o csv');
  const [first, ...rows] = csv.stdout.trimEnd().split('\n');
  assert.equal(first, '"email","name","permissions","last sign-in","last ssh login","keep by"');
  assert.ok(rows.length > 0 && rows.every((row) => /"20\S+Z"$/.test(row)), csv.stdout);
  assert.match(csv.stdout, /^"bob@physics\.example",/m);
  assert.match(
    (await run('members review')).stdout,
    /^bob@physics\.example +\S+ +clusters\.read,clusters\.ssh /m,
  );
  for (const row of rows) {
    const [, email, keys = ''] = /^"([^"]+)","[^"]*","([^"]+)",/.exec(row) ?? [];
    const kept = await run(
      `members grant ${email} ${keys.replaceAll(',', ' ')} --expires never --reason reviewed`,
    );
    assert.equal(kept.status, 0, kept.stderr);
  }
  await prints('members review', [], 'No access ends for want of a review.');
});

test('members grant and revoke change what a member may do', async (t) => {
  const { prints, run } = await person(t, 'ada');
  const row = (keys: string) => ['ROLE  PERMISSIONS  ID', `member  ${keys}  ID`];
  const then = (name: string) =>
    `The clusters get the change now; \`andromeda wait permission ${name}@physics.example\` ends when they have it.`;
  const engineer = 'clusters.kubernetes,clusters.read,clusters.ssh,reservations.read';
  await prints('members grant EVE@physics.example engineer', row(engineer), then('EVE'));
  const eve = 'eve@physics.example';
  await prints(`members grant ${eve} clusters.ssh clusters.read`, row(engineer), 'Nothing to change.');
  const rest = row('clusters.kubernetes,clusters.ssh,reservations.read');
  await prints(`members revoke ${eve} clusters.read --reason gone`, rest, then('eve'));
  await prints(`members revoke ${eve} clusters.read`, rest, 'Nothing to change.');
  for (const [args, sentence] of [
    ['role', '--role says which role it would be.'],
    ['vanish', "'vanish' is no change: add, role, permissions or remove."],
  ]) {
    await says(run(`members plan ${args} ${eve}`), 2, `${sentence}\n`, '');
  }
});

test('staff name any organization, and do there what its owner may', async (t) => {
  const { prints, run } = await person(t, 'root');
  const there = '--org chemistry';
  const row = (name: string, role: string, username: string) => [
    heading,
    `${name}@chemistry.example  ${role}  ${username}  ID`,
  ];
  const added = `members add zoe@chemistry.example ${there} --username zz --permission clusters.read`;
  await prints(added, row('zoe', 'member', 'zz'));
  await prints(`members username zoe@chemistry.example zoe ${there}`, row('zoe', 'member', 'zoe'));
  await prints(`members role zoe@chemistry.example owner ${there}`, row('zoe', 'owner', 'zoe'));
  await prints(`members role carl@chemistry.example member ${there}`, row('carl', 'member', 'carl'));
  const { status, stderr } = await run(`members remove zoe@chemistry.example ${there}`);
  assert.equal(status, 6);
  assert.match(stderr, /owner.*\n$/);
  const says = 'carl@chemistry.example is no longer a member of chemistry.';
  await prints(`members remove carl@chemistry.example ${there}`, [], says);
});
