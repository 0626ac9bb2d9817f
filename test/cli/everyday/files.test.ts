/** Commands that read and write files: `kubeconfig` and `slurm-config`. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { lstat, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parse, stringify } from 'yaml';
import { kubeconfig } from '../../../src/domain/kubernetes/kubeconfig.ts';
import { alphaId } from '../admin/operator-api.ts';
import { type Seen, says } from '../harness.ts';
import { type Routes, refuses, signedIn, taken } from '../small-api.ts';
import { gammaId, inPhysics, lookups, me, uses } from './apis.ts';

const facts = {
  clusterId: gammaId,
  server: 'https://gamma.example:6443',
  clientId: 'k',
  usernameClaim: 'email',
};
const config = (issuer: string, server = facts.server) => stringify(kubeconfig({ ...facts, issuer, server }));
/** The answer of a server that is its own issuer. */
const gives =
  (make: (issuer: string) => string, more: object = {}) =>
  (seen: Seen) => ({ kubeconfig: make(`http://${seen.headers.host}`), ...more });
const route = `GET /clusters/${gammaId}/kubeconfig?organizationId=org_1`;
const withKubeconfig = (t: TestContext, make: (issuer: string) => string = config, more?: object) =>
  signedIn(t, { ...lookups, [route]: gives(make, more) });

test('kubeconfig prints the file, and says when access ends', async (t) => {
  const { run, url } = await withKubeconfig(t, config, { accessExpiresAt: '2030-01-01T00:00:00Z' });
  const { status, stdout, stderr } = await run(['kubeconfig', 'gamma']);
  assert.deepEqual([status, stderr], [0, 'Your access ends at 2030-01-01T00:00:00Z.\n']);
  assert.deepEqual(parse(stdout), parse(config(url)));
  const refused = await signedIn(t, { ...lookups, [route]: refuses(409, 'It is not active.') });
  const merge = ['kubeconfig', 'gamma', '--merge', join(refused.directory, 'k')];
  await says(refused.run(merge), 6, 'It is not active.\n');
  assert.deepEqual(await readdir(refused.directory), ['default.json']);
});

test('kubeconfig finds a cluster by its name for a person who may use and not list it, and says what keeps it from working', async (t) => {
  const failed = { state: 'failed', reason: 'fault', granted: true, message: 'No such role.' } as const;
  const { run, url } = await signedIn(t, {
    'GET /me': { ...me, memberships: [], default_org_id: undefined },
    'GET /me/access': uses({ kubernetes: failed }),
    [route]: gives(config),
  });
  const { status, stdout, stderr } = await run(['kubeconfig', 'gamma']);
  assert.deepEqual([status, stderr], [0, 'No such role.\n']);
  assert.deepEqual(parse(stdout), parse(config(url)));
  const message = "There is no cluster that you may use 'delta'; there are: gamma.\n";
  assert.equal((await run(['kubeconfig', 'delta'])).stderr, message);
});

const mine = `# mine
apiVersion: v1
kind: Config
current-context: home
clusters:
- name: home # the one at home
  cluster: {server: "https://home.example:6443"}
contexts:
- name: home
  context: {cluster: home, user: me}
users:
- name: me
  user: {token: abc}
`;

test('kubeconfig --merge keeps what is there, replaces what is its own, and leaves the file to its owner alone', async (t) => {
  let server = 'https://gamma.example:6443';
  const { run, directory, url } = await withKubeconfig(t, (issuer) => config(issuer, server));
  const real = join(directory, 'real');
  const file = join(directory, 'config');
  await writeFile(real, mine, { mode: 0o644 });
  await symlink(real, file);
  const merge = ['kubeconfig', 'gamma', '--merge', file];
  await says(run(merge), 0, `gamma is in ${file}; use it with \`kubectl --context ${gammaId}\`.\n`, '');
  assert.ok((await lstat(file)).isSymbolicLink());
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const text = await readFile(file, 'utf8');
  assert.match(text, /^# mine\n/);
  assert.match(text, /# the one at home/);
  const merged = parse(text);
  const before = parse(mine);
  const added = parse(config(url));
  assert.equal(merged['current-context'], 'home');
  for (const list of ['clusters', 'contexts', 'users'])
    assert.deepEqual(merged[list], [...before[list], ...added[list]]);

  await run(merge);
  assert.equal(await readFile(file, 'utf8'), text, 'again changes nothing');
  server = 'https://moved.example:6443';
  const used = await run([...merge, '--use']);
  assert.equal(used.stderr, `gamma is in ${file}; kubectl uses it now.\n`);
  const moved = parse(await readFile(file, 'utf8'));
  assert.equal(moved.clusters.length, 2);
  assert.equal(moved.clusters[1].cluster.server, server);
  assert.equal(moved['current-context'], gammaId);
  assert.deepEqual((await readdir(directory)).sort(), ['config', 'default.json', 'real']);
});

/** What people and tools write, each of which another writer of YAML would change. */
const styles: Record<string, string> = {
  'numbers, quotes, comments and lines in between': `# top
apiVersion: v1
clusters:   # the lot
# prod
- name: prod   # x
  cluster: {server: "https://x", id: 0123,  n: 12345678901234567890}   # trailing
# between

- cluster:
    server: >-
      https://y
    extensions: [ {name: 0x1F, at: 1.10, e: 1e3} ]
    # in
  name: !!str 7
# after

users: []
contexts:
    - name: 'a'
      context: { user: ~, on: yes }

# end of contexts
kind: Config

# tail
`,
  'no list at all, and no line end': "current-context: ''\nkind:   Config",
  'empty lists': 'apiVersion: v1\nclusters:\nusers: null\ncontexts: # none\nkind: Config\ncurrent-context:\n',
  'lines of Windows': 'kind: Config\r\nclusters:\r\n- name: a\r\n  n: 0123\r\nusers: []\r\n# end\r\n',
  'an indented list with a document start and end':
    '---\nclusters:\n  - &a\n    name: a\n  - *a\ncontexts:\n  - name: c\n    <<: {n: 1}\nusers:\n  - name: u\n...\n',
};

test('kubeconfig --merge changes no byte of what others wrote, and a link stays one', async (t) => {
  let server = facts.server;
  const { run, directory, url } = await withKubeconfig(t, (issuer) => config(issuer, server));
  const [file, link] = [join(directory, 'real'), join(directory, 'config')];
  await symlink('between', link);
  await symlink('real', join(directory, 'between'));
  const merge = ['kubeconfig', 'gamma', '--merge', link];
  // The link leads nowhere yet.
  assert.equal((await run(merge)).status, 0);
  assert.ok((await lstat(link)).isSymbolicLink());
  const added = parse(await readFile(file, 'utf8'));
  const wordsOf = (text: string) => text.split(/\s+/).filter((word) => /\w/.test(word));
  for (const [what, text] of Object.entries(styles)) {
    await writeFile(file, text);
    for (const address of [facts.server, 'https://moved.example:6443']) {
      server = address;
      const { status, stderr } = await run([...merge, '--use']);
      assert.deepEqual([status, what], [0, what], stderr);
      const after = await readFile(file, 'utf8');
      const [before, merged] = [parse(text, { merge: true }), parse(after, { merge: true })];
      const ours = parse(config(url, server));
      for (const list of ['clusters', 'contexts', 'users'])
        assert.deepEqual(merged[list], [...(before[list] ?? []), ...ours[list]], what);
      assert.equal(merged['current-context'], added['current-context'], what);
      // What was there is there in its order, but for what had no value.
      const left = wordsOf(after);
      for (const word of wordsOf(text.replace(/null|''|""|\[ *\]/g, ' ')))
        assert.ok(
          left.splice(0, left.findIndex((one) => one.startsWith(word)) + 1).length > 0,
          `${what}: ${word}`,
        );
    }
  }
});

const full = 'clusters: []\ncontexts: []\nusers:\n- name: a\n  user: {token: abc}\n';

/** Where text that is put between the bytes of others would mean something else, or be no YAML. */
const traps: Record<string, string> = {
  'a mark of the byte order': `\uFEFF${full}`,
  'such a mark and lines of Windows': `\uFEFF${full.replaceAll('\n', '\r\n')}`,
  'lines of Windows and no values': 'kind: Config\r\nclusters:\r\ncontexts:\r\nusers:\r\n',
  'lines of Windows in a text':
    'clusters:\r\n- name: a\r\n  cluster:\r\n    server: |\r\n      https://a\r\n      b\r\n',
  'users at the end and no other list':
    'apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user:\n    token: abc\n',
  'no item': '{}\n# empty\n',
  'no item behind a start': '---\n{}\n',
  'a start alone': '---\n',
  'a comment alone': '# mine\n',
  'an item without a value': 'clusters:\n-\ncontexts: []\nusers: []\n',
  'a key with a mark': '? clusters\n: []\n? users\n: - name: a\n    user: {token: abc}\n',
  'a key with a mark and no value': '? clusters\nkind: Config\n',
  'a tab for a value': 'clusters:\t\ncontexts:\t# none\nusers: []\n',
  'an empty text for the context': `current-context: >-\n${full}`,
  'no value and no line end': 'apiVersion: v1\nkind: Config\ncurrent-context:',
  'a comment and an end': `${full}# end\n...\n`,
  JSON: '{"kind": "Config",  "users": [ ], "clusters": [ {"name": "a"} ], "current-context": ""}\n',
  'a list in braces': 'users: [ {name: a, user: {token: "0123"}} ]\nclusters: []\n',
  'a key that stands alone in braces': '{kind: Config, clusters }\n',
  'another such, and no list': '{kind: Config, preferences }\n',
};

/** As kubectl reads it, where there is one. */
function readAsKubectl(file: string): Record<string, Record<string, unknown>[] | null> {
  const { status, stdout, stderr } = spawnSync(
    'kubectl',
    ['--kubeconfig', file, 'config', 'view', '--raw', '-o', 'json'],
    { encoding: 'utf8' },
  );
  assert.ok(status === 0 || status === null, stderr);
  return status === null ? {} : JSON.parse(stdout);
}

test('kubeconfig --merge keeps what a file means that it cannot add to byte by byte', async (t) => {
  const { run, directory, url } = await withKubeconfig(t);
  const file = join(directory, 'config');
  const ours = parse(config(url));
  for (const [what, text] of Object.entries(traps)) {
    await writeFile(file, text);
    const [before, known] = [parse(text) ?? {}, readAsKubectl(file)];
    const { status, stderr } = await run(['kubeconfig', 'gamma', '--merge', file, '--use']);
    assert.deepEqual([status, what], [0, what], stderr);
    const after = await readFile(file, 'utf8');
    const lists = ['clusters', 'contexts', 'users'].map((name) => [
      name,
      [...(before[name] ?? []), ...ours[name]],
    ]);
    const { apiVersion, kind } = Object.keys(before).length === 0 ? ours : before;
    const named = { ...(apiVersion && { apiVersion }), ...(kind && { kind }) };
    const expected = { ...before, ...named, ...Object.fromEntries(lists), 'current-context': gammaId };
    assert.deepEqual(parse(after), expected, `${what}\n${after}`);
    for (const comment of text.match(/# \w+/g) ?? []) assert.ok(after.includes(comment), what);
    assert.equal(/\r\n/.test(after), /\r\n/.test(text), what);
    if (text.includes('\r\n')) assert.doesNotMatch(after, /[^\r]\n/, what);
    const merged = readAsKubectl(file);
    for (const name of ['clusters', 'contexts', 'users']) {
      const isOurs = (one: Record<string, unknown>) => one.name === gammaId;
      assert.deepEqual(merged[name]?.filter((one) => !isOurs(one)) ?? [], known[name] ?? [], what);
      if (merged[name]) assert.equal(merged[name].filter(isOurs).length, 1, what);
    }
    if (what === 'JSON') assert.deepEqual(JSON.parse(after), expected);
    await run(['kubeconfig', 'gamma', '--merge', file, '--use']);
    assert.equal(await readFile(file, 'utf8'), after, `${what}: again changes nothing`);
  }
});

test('kubeconfig --merge makes the file and its directory; what it cannot add to is left alone', async (t) => {
  const { run, directory, url } = await withKubeconfig(t);
  const file = join(directory, 'kube/config');
  const merge = ['kubeconfig', 'gamma', '--merge', file];
  await says(run(merge), 0, `gamma is in ${file}; kubectl uses it now.\n`);
  assert.deepEqual(parse(await readFile(file, 'utf8')), parse(config(url)));
  const kubectl = spawnSync('kubectl', ['config', 'get-contexts', '-o', 'name', '--kubeconfig', file]);
  if (kubectl.status !== null) assert.equal(`${kubectl.stdout}`, `${gammaId}\n`);
  const alias = 'clusters: &none []\ncontexts: []\nusers: []\nextensions: *none\n';
  for (const text of ['- a\n', 'clusters: 7\n', 'a: [\n', 'a: 1\n---\nb: 2\n', alias]) {
    await writeFile(file, text);
    const { status, stderr } = await run(merge);
    assert.equal(status, 1);
    const why = text === alias ? 'cannot be added to without a change .*' : 'is not a kubeconfig; ';
    assert.match(stderr, new RegExp(`^\\S+ ${why}nothing was written`));
    if (text.includes('---')) assert.match(stderr, /:2:1: a second document begins here/);
    assert.equal(await readFile(file, 'utf8'), text);
  }
});

type Kubeconfig = ReturnType<typeof kubeconfig>;
const withUser = (file: Kubeconfig, more: object) => ({
  ...file,
  users: [{ name: gammaId, user: { ...file.users[0]?.user, ...more } }],
});
const withExec = (file: Kubeconfig, more: object) =>
  withUser(file, { exec: { ...file.users[0]?.user.exec, ...more } });
const argsOf = (file: Kubeconfig) => file.users[0]?.user.exec.args ?? [];
const withArg = (file: Kubeconfig, arg: unknown) => withExec(file, { args: [...argsOf(file), arg] });
const withIssuer = (file: Kubeconfig, issuer: string) =>
  withExec(file, { args: argsOf(file).map((arg) => arg.replace(/^(--oidc-issuer-url=).*/, `$1${issuer}`)) });
const withCluster = (file: Kubeconfig, more: object) => ({
  ...file,
  clusters: [{ name: gammaId, cluster: { ...file.clusters[0]?.cluster, ...more } }],
});

/** What a hostile server makes of the kubeconfig that it should give. */
const hostile: [(file: Kubeconfig) => unknown, RegExp][] = [
  [(file) => withExec(file, { command: 'sh' }), /user is not `kubectl oidc-login/],
  [(file) => withExec(file, { args: ['evil'] }), /user is not `kubectl oidc-login/],
  [(file) => withExec(file, { env: [{ name: 'A', value: 'b' }] }), /user is not `kubectl/],
  [(file) => withUser(file, { token: 'x' }), /user is not `kubectl oidc-login/],
  [(file) => withArg(file, '--browser-command=sh'), /argument that is not expected/],
  [(file) => withArg(file, '--grant-type=\u202ex'), /--grant-type=\\u202ex/],
  [(file) => withArg(file, 7), /argument that is not expected/],
  [(file) => withArg(file, '--oidc-issuer-url=https://evil.example'), /sign-in is not at http/],
  [(file) => withIssuer(file, 'https://evil.example'), /sign-in is not at http/],
  [(file) => withCluster(file, { server: 'http://gamma.example' }), /not at an https address/],
  [(file) => withCluster(file, { 'insecure-skip-tls-verify': true }), /cluster as expected/],
  [(file) => withCluster(file, { 'proxy-url': 'http://evil.example' }), /cluster as expected/],
  [(file) => ({ ...file, users: [...file.users, ...file.users] }), /user is not/],
  [(file) => JSON.parse(JSON.stringify(file).replaceAll(gammaId, 'home')), /ID of the cluster/],
  [(file) => ({ ...file, extensions: [] }), /something else than one cluster/],
  [() => [], /something else than one cluster/],
];

test('a kubeconfig that runs, reaches or names anything else than expected is not used', async (t) => {
  let change: (file: Kubeconfig) => unknown = (file) => file;
  const { run, directory } = await withKubeconfig(t, (issuer) =>
    stringify(change(kubeconfig({ ...facts, issuer }))),
  );
  const file = join(directory, 'config');
  await writeFile(file, mine);
  for (const [how, sentence] of hostile) {
    change = how;
    const { status, stdout, stderr } = await run(['kubeconfig', 'gamma', '--merge', file]);
    assert.deepEqual([status, stdout], [1, ''], `${how}`);
    assert.match(stderr, /^The kubeconfig that the Platform API gave is not used: .*\.\n$/, `${how}`);
    assert.match(stderr, sentence, `${how}`);
    assert.equal(await readFile(file, 'utf8'), mine, `${how}`);
  }
  const printed = await run(['kubeconfig', 'gamma']);
  assert.deepEqual([printed.status, printed.stdout], [1, '']);
  change = (file) => withArg(file, '--certificate-authority-data=AAAA');
  assert.equal((await run(['kubeconfig', 'gamma', '--merge', file])).status, 0);
});

test('kubeconfig --merge replaces nothing that it did not make', async (t) => {
  const { run, directory, url } = await withKubeconfig(t);
  const file = join(directory, 'config');
  const ours = parse(config(url));
  const theirs: Record<string, object> = {
    'a cluster of that name': { ...ours, users: [], contexts: [] },
    'a context of that name': { ...ours, users: [], clusters: [] },
    'a user with another program': withExec(ours, { command: '/opt/login' }),
    'a user with another issuer': withIssuer(ours, 'https://other.example'),
    'a user with a token': { ...ours, users: [{ name: gammaId, user: { token: 'x' } }] },
  };
  for (const [what, before] of Object.entries(theirs)) {
    await writeFile(file, stringify(before));
    const sentence = `${file} has an entry called ${gammaId} that \`andromeda kubeconfig\` did not make; rename it, or name another file.\n`;
    await says(run(['kubeconfig', 'gamma', '--merge', file]), 1, sentence);
    assert.equal(await readFile(file, 'utf8'), stringify(before), what);
  }
});

const slurm = { slurmExtraConfig: 'A=1\n', prolog: { 'a.sh': '#!/bin/sh\necho hi\n' } };
const slurmYaml = 'slurmExtraConfig: |\n  A=1\nprolog:\n  a.sh: |\n    #!/bin/sh\n    echo hi\n';
const ofAlpha = `/clusters/${alphaId}/scheduler-configuration?${inPhysics}`;
const ofDefault = '/organizations/org_1/scheduler-configuration';

async function withSlurm(t: TestContext, routes: Routes = {}) {
  const machine = await signedIn(t, {
    ...lookups,
    [`GET ${ofAlpha}`]: slurm,
    [`PUT ${ofAlpha}`]: (seen: Seen) => JSON.parse(`${seen.body}`),
    [`GET ${ofDefault}`]: {},
    [`PUT ${ofDefault}`]: slurm,
    ...routes,
  });
  const puts = () => taken(machine.requests).filter((line) => line.startsWith('PUT '));
  return { ...machine, puts };
}

test('slurm-config get prints YAML that slurm-config set takes, and the same again changes nothing', async (t) => {
  const { run, puts } = await withSlurm(t);
  const { stdout } = await run(['slurm-config', 'get', 'alpha']);
  assert.equal(stdout, slurmYaml);
  const set = (input: string, at: string) => run(['slurm-config', 'set', at, '-f', '-'], { input });
  const again = 'It stands already. Where the cluster refused it, it is tried again.\n';
  await says(set(stdout, 'alpha'), 0, again);
  assert.deepEqual(puts(), [`PUT ${ofAlpha} ${JSON.stringify(slurm)}`]);
  await says(set(stdout.replace('A=1', 'A=2'), 'alpha'), 0, 'The Slurm configuration of alpha is set.\n');
  assert.deepEqual(puts(), [`PUT ${ofAlpha} ${JSON.stringify({ ...slurm, slurmExtraConfig: 'A=2\n' })}`]);
  assert.equal((await run(['slurm-config', 'get', '--default'])).stdout, '{}\n');
  await says(set(stdout, '--default'), 0, 'The Slurm configuration of new clusters of physics is set.\n');
  assert.deepEqual(puts(), [`PUT ${ofDefault} ${JSON.stringify(slurm)}`]);
});

test('what slurm-config is given is named when it is wrong', async (t) => {
  const { run, directory } = await withSlurm(t, { [`PUT ${ofAlpha}`]: refuses(400, 'a.sh lacks #!.') });
  const file = join(directory, 'slurm.yaml');
  await writeFile(file, 'prolog: { a.sh: x }\n');
  const name = 'Name a cluster, or give --default for what new clusters start with.';
  const rows: [string[], number, string][] = [
    [['set', 'alpha', '-f', file], 1, `${file}: a.sh lacks #!.`],
    [['set', 'alpha'], 2, "Required option '-f, --file <file>' not specified; see `andromeda --help`."],
    [['set', 'alpha', '-f', '/nowhere'], 1, '/nowhere cannot be read: there is no such file.'],
    [['get'], 2, name],
    [['get', 'alpha', '--default'], 2, name],
    [['get', 'delta'], 5, "There is no cluster 'delta'; there are: alpha, gamma."],
  ];
  for (const [args, expected, sentence] of rows)
    await says(run(['slurm-config', ...args]), expected, `${sentence}\n`, '');
});

test('slurm-config says what a change comes to, how far it is, and who made the others', async (t) => {
  const at = (rest: string) => ofAlpha.replace('?', `${rest}?`);
  const answer = {
    generation: 3,
    faults: [] as { message: string }[],
    changes: [{ field: 'prolog', file: 'a.sh', change: 'added' }],
    removedPartitions: ['old'],
    hasSlurm: true,
    restarts: ['login', 'controller', 'compute'],
    rollout: 'restart',
    openSessions: 2,
    endedJobs: 1,
  };
  const version = {
    generation: 2,
    createdAt: '2026-01-01T00:00:00Z',
    author: { userId: 'user_1', email: 'ada@physics.example' },
    reason: 'a new partition',
    changes: [{ field: 'slurmPartitions', change: 'changed' }],
    bytes: 10,
  };
  const { run, puts } = await withSlurm(t, {
    [`POST ${at('/check')}`]: answer,
    [`GET ${at('/status')}`]: {
      generation: 3,
      state: 'refused',
      inForceGeneration: 2,
      message: 'fatal: no.',
    },
    [`GET ${at('/versions')}`]: { items: [version] },
    [`GET ${at('/versions/2')}`]: { slurmExtraConfig: 'A=0\n' },
  });
  const slurmConfig = (...args: string[]) => run(['slurm-config', ...args], { input: slurmYaml });
  const prints = async (args: string[], text: string) =>
    assert.equal((await slurmConfig(...args)).stdout, text);
  await prints(
    ['check', 'alpha', '-f', '-'],
    'Changes: prolog/a.sh (added).\nRestarts: login, controller, compute.\nSSH sessions that end: 2.\n' +
      'Jobs that end, as compute nodes restart: 1.\nPartitions that go, with the jobs in them: old.\n',
  );
  answer.faults = [{ message: 'One.' }, { message: 'Two.' }];
  await says(slurmConfig('check', 'alpha', '-f', '-'), 1, '-: One. Two.\n');
  await prints(
    ['status', 'alpha'],
    'Number 3. The cluster tried it and did not take it; what was there before stays. Setting the same again tries it again.\nfatal: no.\nIn force on the cluster: number 2.\n',
  );
  await prints(
    ['history', 'alpha'],
    'NUMBER  SET                   BY                   CHANGED          REASON\n' +
      '2       2026-01-01T00:00:00Z  ada@physics.example  slurmPartitions  a new partition\n',
  );
  await prints(['get', 'alpha', '--number', '2'], 'slurmExtraConfig: |\n  A=0\n');
  const wrong = "'../me' is not the number of a configuration.\n";
  await says(slurmConfig('restore', 'alpha', '../me'), 2, wrong);
  assert.deepEqual(puts(), []);
  const restored = await slurmConfig('restore', 'alpha', '2', '--reason', 'back');
  assert.equal(restored.stderr, 'The Slurm configuration of alpha is set.\n');
  assert.deepEqual(puts(), [`PUT ${ofAlpha} {"slurmExtraConfig":"A=0\\n"}`]);
});

test('at a terminal, a change is shown and asked for', async (t) => {
  const { directory, puts, atTerminal } = await withSlurm(t);
  const file = join(directory, 'slurm.yaml');
  await writeFile(file, 'computeS6Packages: "#!/bin/sh\\n"\n');
  for (const [typed, status, changes] of [
    ['n\r', 1, 0],
    ['y\r', 0, 1],
  ] as const) {
    const command = atTerminal(['slurm-config', 'set', 'alpha', '-f', file]);
    const screen = await command.until('Go on? [y/N] ');
    assert.match(screen, /This closes the SSH sessions that are open on alpha\.\n/);
    assert.match(screen, /It restarts every compute node, and jobs that run there end/);
    command.type(typed);
    assert.equal((await command.result).status, status);
    assert.equal(puts().length, changes);
  }
  const quick = atTerminal(['slurm-config', 'set', 'alpha', '-f', file, '--yes']);
  assert.equal((await quick.result).status, 0);
});
