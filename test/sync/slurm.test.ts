/** The parts of the Slurm driver that need no cluster. */

import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import type { SlurmSettings } from '../../src/domain/slurm/settings.ts';
import { createLogger } from '../../src/lib/log.ts';
import { SlurmCluster } from '../../src/sync/slurm/cluster.ts';
import {
  expandHosts,
  type Facts,
  jobOf,
  machineOf,
  pendingJobOf,
  readFacts,
} from '../../src/sync/slurm/facts.ts';
import { type Host, hostsOf, loginNodesOf, type Role } from '../../src/sync/slurm/hosts.ts';
import { createSlurmDriver } from '../../src/sync/slurm/index.ts';
import { type Findings, reportOf } from '../../src/sync/slurm/report.ts';
import { configuration } from '../../src/sync/slurm/script/configuration.ts';
import { prelude } from '../../src/sync/slurm/script/prelude.ts';
import { readReport, scriptOf } from '../../src/sync/slurm/script.ts';
import { createShell, HostError } from '../../src/sync/slurm/shell.ts';
import { becomes, eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { fieldsOf } from '../support/fields.ts';
import { freePorts } from '../support/ports.ts';

after(() => {
  // Scripts that run on this machine make it; others may be using it.
  try {
    rmdirSync('/run/andromeda-slurm');
  } catch {}
});

const hostKey = 'ssh-ed25519 AAAA';
const settings: SlurmSettings = {
  login: [
    { name: 'login1', host: 'head', hostKey },
    { name: 'login2', host: 'other', hostKey },
  ],
  controller: { host: 'head', hostKey },
  compute: { host: '{name}.lab' },
};

test('a host that is named several times is one host, with all that it is there for', () => {
  const hosts = hostsOf(settings, { nodes: ['a1', 'a2'], usernames: [] });
  assert.deepEqual(
    hosts.map(({ address, roles, nodes }) => [address, [...roles].join(), nodes.join()]),
    [
      ['head:22', 'controller,accounting,login', ''],
      ['other:22', 'login', ''],
      ['a1.lab:22', 'compute', 'a1'],
      ['a2.lab:22', 'compute', 'a2'],
    ],
  );
  const own = {
    ...settings,
    loginMode: 'PerUser' as const,
    login: [{ name: 'own', host: '{username}.lab', hostKey }],
  };
  assert.deepEqual(fieldsOf(loginNodesOf(own, ['ada', 'bob']), 'name', 'host', 'username'), [
    ['own-ada', 'ada.lab', 'ada'],
    ['own-bob', 'bob.lab', 'bob'],
  ]);
});

test('a host is reached through the hop that its group names, and the hop itself directly', () => {
  const gate = { host: 'gate', hostKey };
  const nested: SlurmSettings = {
    login: [{ name: 'login1', host: 'inner', hostKey, via: 'controller' }],
    controller: { host: 'head', hostKey, via: gate },
    compute: { host: '{name}', via: 'login1' },
  };
  const ways = hostsOf(nested, { nodes: ['a1', 'head', 'inner'], usernames: [] }).map(
    ({ address, reach }) => {
      const way = [];
      for (let via = reach?.via; via; via = via.via) way.push(`${via.host}:${via.port}`);
      return [address, way.join()];
    },
  );
  assert.deepEqual(ways, [
    ['head:22', 'gate:22'],
    ['inner:22', 'head:22,gate:22'],
    ['a1:22', 'inner:22,head:22,gate:22'],
  ]);
  assert.equal(loginNodesOf(nested, [])[0]?.via?.via?.host, 'gate');
  // The service's own machine is no hop: what it reaches, the service reaches.
  const here = { ...nested, controller: { local: true } };
  assert.equal(loginNodesOf(here, [])[0]?.via, undefined);
});

test('host lists are what Slurm means by them', () => {
  for (const [list, names] of [
    ['', []],
    ['a1', ['a1']],
    ['a1,b[01-03,7]', ['a1', 'b01', 'b02', 'b03', 'b7']],
    ['r[1-2]n[08-10]', ['r1n08', 'r1n09', 'r1n10', 'r2n08', 'r2n09', 'r2n10']],
    ['gpu[1-2].lab,x', ['gpu1.lab', 'gpu2.lab', 'x']],
  ] as const) {
    assert.deepEqual(expandHosts(list), names, list);
  }
});

test('nodes are machines, ready when they take work', () => {
  const line = (state: string, gres: string) =>
    `NodeName=a1 Arch=x86_64 CPUTot=64 Gres=${gres} NodeAddr=10.0.0.1 RealMemory=515000 State=${state} OS=Linux 6.1 #1 SMP`;
  assert.deepEqual(machineOf(line('MIXED', 'gpu:h100:8(S:0-1),shard:64')), {
    name: 'a1',
    ready: true,
    phase: 'mixed',
    gpuModel: 'h100',
    gpuCount: 8,
    cpuCores: 64,
    memoryGib: 502,
  });
  assert.equal(machineOf(line('IDLE', '(null)'))?.gpuCount, undefined);
  const { gpuModel, gpuCount } = machineOf(line('IDLE', 'gpu:4')) ?? {};
  assert.deepEqual([gpuModel, gpuCount], [undefined, 4]);
  const away = 'DOWN DOWN* IDLE* IDLE+DRAIN ALLOCATED+MAINT UNKNOWN IDLE~ IDLE+NOT_RESPONDING';
  for (const state of away.split(' ')) assert.equal(machineOf(line(state, '(null)'))?.ready, false, state);
  assert.equal(machineOf('nonsense'), undefined);
  const job = { id: '9_3', user: 'ada', name: 'a name|with bars', machines: ['a1', 'a2'] };
  assert.deepEqual(jobOf('12|9_3|ada|N/A|NONE|a[1-2]|a name|with bars', new Map()), job);
  const times = { startedAt: '2026-11-26T12:00:00.000Z', endsAt: '2026-11-26T12:10:00.000Z' };
  assert.deepEqual(jobOf('12|9_3|ada|1795694400|1795695000|a[1-2]|a name|with bars', new Map([['12', 4]])), {
    ...job,
    gpus: 4,
    ...times,
  });
  assert.deepEqual(pendingJobOf('13|13_[1-9]|ada|1795694400|Priority|a|name', new Map([['13', 8]])), {
    ...{ id: '13_[1-9]', user: 'ada', name: 'a|name', reason: 'Priority', gpus: 8 },
    startsAt: times.startedAt,
  });
  assert.equal(pendingJobOf('13|13|ada|N/A|Resources|', new Map())?.startsAt, undefined);
});

test('which jobs run is unknown, and not none, where Slurm did not say', () => {
  const read = (lines: string) =>
    readFacts(`host\thead\ncontroller\tup\n${lines}end\n`, new Map()).controller;
  const job = 'queue-job\t12|12|ada|N/A|NONE|a1|train\n';
  const { jobs, machines, jobsArePrivate } = read('') ?? {};
  assert.deepEqual([jobs, machines, jobsArePrivate], [undefined, undefined, undefined]);
  assert.equal(readFacts('host\thead\ncontroller\tdown\nend\n', new Map()).controller?.jobs, undefined);
  const known = read(`${job}gpus\t12\t4\nqueue\t3\npending\t0\nprivate\tjobs,usage\n`);
  assert.deepEqual([known?.jobsArePrivate, known?.jobs?.[0]?.gpus], [true, 4]);
  assert.deepEqual(known?.moreJobs, { running: 2, pending: 0 });
  assert.equal(read('queue\t0\npending\t0\nprivate\tnone\n')?.jobsArePrivate, false);
});

test('GPUs in use and reasons are what slurmctld says, and unknown where it does not count whole GPUs', () => {
  const machine = (more: string, state = 'MIXED') =>
    machineOf(`NodeName=a1 Gres=gpu:h100:4(S:0-1),gpu:a100:2,shard:8 ${more}State=${state} OS=Linux 6.1`);
  const used: [string, number | undefined][] = [
    ['', undefined],
    ['GresDrain=N/A GresUsed=gpu:h100:3(IDX:0,2-3),gpu:a100:1(IDX:0),shard:0 ', 4],
    ['GresUsed=gpu:h100:0(IDX:N/A),gpu:a100:0 ', 0],
    ['GresUsed=gpu:h100:1(IDX:0),shard:h100:2(1/2,1/2) ', undefined],
    ['GresUsed=gpu:2,mps:50 ', undefined],
    ['GresUsed=N/A ', undefined],
  ];
  for (const [more, count] of used) assert.equal(machine(more)?.gpusInUse, count, more);
  assert.deepEqual([machine('')?.gpuCount, machine('')?.gpuModel], [6, 'h100']);
  assert.equal(machineOf('NodeName=a1 Gres=(null) GresUsed= State=IDLE')?.gpusInUse, undefined);
  const reason = (rest: string, state = 'IDLE+DRAIN') =>
    machineOf(`NodeName=a1 Gres=(null) State=${state} ${rest}`)?.reason;
  for (const [rest, expected] of [
    ['Reason=bad fan [left, rear] [root@2026-11-20T10:00:00] Comment=x', 'bad fan [left, rear]'],
    ['Reason=Not responding', 'Not responding'],
    ['Reason=x Comment=Reason=y', 'x'],
    ['Comment=fine', undefined],
  ] as const) {
    assert.equal(reason(rest), expected);
  }
  assert.equal(reason(`Reason=${'x'.repeat(999)}`)?.length, 200);
  assert.equal(reason('Reason=was bad [root@2026-11-20T10:00:00]', 'IDLE'), undefined, 'it works again');
});

test('what is wanted goes in as data: nothing in it can become a line, a field or code', () => {
  assert.throws(() => scriptOf([['account', 'a\nb']]), /line end/);
  assert.throws(() => scriptOf([['account', 'a\tb']]), /tab/);
  const text = scriptOf([['id', '$(touch /tmp/x)`id`']]);
  assert.match(text, /<< 'ANDROMEDA_DATA_ENDS'\nid\t\$\(touch \/tmp\/x\)`id`\nend\nANDROMEDA_DATA_ENDS\n$/);
  assert.equal(spawnSync('sh', ['-n'], { input: text }).status, 0, 'and it is a script');
});

test('a script that came only in part does nothing', () => {
  const text = scriptOf([
    ['id', 'none'],
    ['action', 'observe'],
  ]);
  for (const cut of [text.length - 25, text.length - 40]) {
    const { status, stderr } = spawnSync('sh', ['-s'], { input: text.slice(0, cut), encoding: 'utf8' });
    assert.notEqual(status, 0);
    assert.match(stderr, /came only in part|cannot be (made|written)|unterminated|Permission denied/i);
  }
});

test('hosts that share the directory of the configuration put the same into it at the same time', async () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'slurm.conf');
  writeFileSync(file, 'old\n');
  const results = await Promise.all(
    ['a1', 'a2', 'a3', 'a4'].map((host) => {
      const own = join(directory.path, host);
      const script = `${prelude}${configuration}
        host=${host} S=${own} T=${own}
        mkdir "$S" && echo "token of $host" > "$S/token" && echo new > "$S/wanted"
        for number in $(seq 20); do
          echo "$number" > "$T/script"; keep_script ${directory.path}/50-$number
          replace "$S/wanted" ${file}
        done`;
      return promisify(execFile)('sh', ['-c', script]).then(
        () => 'done',
        (error) => error.stderr,
      );
    }),
  );
  assert.deepEqual(results, ['done', 'done', 'done', 'done']);
  assert.equal(readFileSync(file, 'utf8'), 'new\n');
  assert.equal(readFileSync(join(directory.path, '50-20'), 'utf8'), '20\n');
  const made = Array.from({ length: 20 }, (_, index) => `50-${index + 1}`);
  assert.deepEqual(
    readdirSync(directory.path).sort(),
    [...made, 'a1', 'a2', 'a3', 'a4', 'slurm.conf'].sort(),
    'nothing else is left',
  );
});

test('our part of a configuration file replaces what it names, and goes again without a trace', () => {
  using directory = temporaryDirectory();
  const site =
    'ClusterName=lab\nslurmdtimeout = 30\nNodeName=a1\nPartitionName=main \\\n  Nodes=a1\n# PartitionName=old\nInclude more.conf\n';
  const block = 'PartitionName=gpu Nodes=a1\nSlurmdTimeout=60\nNodeName=a2\n';
  const file = (name: string, text: string) => {
    writeFileSync(join(directory.path, name), text);
    return join(directory.path, name);
  };
  const run = (from: string, part: string, mode = 'keys') => {
    const command = `${prelude}${configuration}\nrender "$1" "$2" ${mode}`;
    const { stdout, stderr } = spawnSync('sh', ['-c', command, 'sh', from, part], { encoding: 'utf8' });
    assert.equal(stderr, '');
    return stdout;
  };
  const with_ = run(file('slurm.conf', site), file('block', block));
  assert.equal(
    with_,
    'ClusterName=lab\n#andromeda: slurmdtimeout = 30\nNodeName=a1\n#andromeda: PartitionName=main \\\n#andromeda:   Nodes=a1\n# PartitionName=old\nInclude more.conf\n' +
      `# BEGIN andromeda: written by the access service, what is changed between these lines is lost\n${block}# END andromeda\n`,
  );
  const again = file('again', with_);
  assert.equal(run(again, file('block', block)), with_, 'the same again');
  assert.equal(run(again, file('none', '')), site, 'and back');
  assert.equal(
    run(file('gres.conf', 'Name=gpu File=/dev/x\n\n# words\n'), file('block', 'Name=gpu\n'), 'whole').split(
      '\n',
    )[0],
    '#andromeda: Name=gpu File=/dev/x',
  );
  const broken = file('broken', 'A=1\n# BEGIN andromeda: x\nB=2\n');
  assert.equal(
    run(broken, file('none', '')),
    'A=1\n# BEGIN andromeda: x\nB=2\n',
    'a block without its end is not ours',
  );
});

const facts = (generation: number, changes: Partial<Facts> = {}): Facts => ({
  ...readFacts('host\thead\nend\n', new Map()),
  settled: { generation, listVersion: generation + 10, desiredGeneration: generation },
  controller: {
    up: true,
    message: '',
    accounting: { up: true, message: '' },
    machines: [],
    jobs: [],
    pendingJobs: [],
    moreJobs: { running: 0, pending: 0 },
    jobsArePrivate: false,
    usageIsPrivate: false,
    site: {},
  },
  ...changes,
});
const confirmedBy = (said: Record<string, Facts | HostError>) =>
  new Map(
    Object.entries(said).flatMap(([address, one]) =>
      one instanceof HostError || !one.settled ? [] : [[address, one.settled]],
    ),
  );
const report = (
  said: Record<string, Facts | HostError>,
  controllerFacts = said['head:22'] as Facts,
  more: Partial<Findings> = {},
) =>
  reportOf({
    settings,
    hosts: hostsOf(settings, { nodes: ['a1'], usernames: [] }),
    loginNodes: loginNodesOf(settings, []),
    results: new Map(Object.entries(said)),
    problems: new Map(),
    confirmed: confirmedBy(said),
    managed: new Set(),
    wantedGeneration: 0,
    controllerFacts,
    isApplying: false,
    gpuDays: [],
    progress: undefined,
    left: [],
    isCleaningDue: false,
    wereUp: new Set(),
    silent: new Map(),
    ...more,
  });

const allAt5 = { 'head:22': facts(5), 'other:22': facts(5), 'a1.lab:22': facts(5) };

test('what counts is what the controller and a login node have; a login node that is behind is not up', () => {
  const found = report({ 'head:22': facts(5), 'other:22': facts(4), 'a1.lab:22': facts(3) });
  assert.deepEqual([found.manifestGeneration, found.listVersion], [5, 15]);
  assert.deepEqual(fieldsOf(found.loginNodes, 'up'), [true, false]);
  assert.equal(found.drifted, true);
  assert.equal(report(allAt5).drifted, undefined);
});

test('while something is applied, a login node that was up keeps its sessions, and the older version counts', () => {
  const said = { 'head:22': facts(5), 'other:22': facts(4), 'a1.lab:22': facts(4) };
  const wereUp = new Set(['login1', 'login2']);
  const found = report(said, said['head:22'], { isApplying: true, wereUp });
  assert.equal(found.manifestGeneration, 4);
  assert.deepEqual(fieldsOf(found.loginNodes, 'up'), [true, true]);
});

test('which shells a login node lacks is known of one that has the list in force, and of no other', () => {
  const said = { 'head:22': facts(5), 'other:22': facts(4), 'a1.lab:22': facts(5) };
  const { loginNodes } = report(said, said['head:22'], { wereUp: new Set(['login1', 'login2']) });
  assert.deepEqual(fieldsOf(loginNodes, 'up', 'missingShells'), [
    [true, []],
    [true, undefined],
  ]);
});

test('a host that is away is no fault; one that refuses is', () => {
  const away = report({ ...allAt5, 'other:22': new HostError('other does not answer', true) });
  assert.deepEqual([away.failure, away.drifted, away.loginNodes[1]?.up], [null, undefined, false]);
  const refuses = report({ ...allAt5, 'other:22': new HostError('other shows another key', false) });
  assert.equal(refuses.failure, 'other shows another key');
});

test('hosts behind a hop with a fault are named together, with the hop', () => {
  const nodes = ['a1', 'a2', 'a3'];
  const hosts = hostsOf(settings, { nodes, usernames: [] });
  const hop = { address: 'head:22', message: 'head:22 shows another key.' };
  const said = (isUnreachable: boolean) =>
    Object.fromEntries(nodes.map((node) => [`${node}.lab:22`, new HostError(node, isUnreachable, hop)]));
  const refused = report({ ...allAt5, ...said(false) }, allAt5['head:22'], { hosts });
  assert.equal(
    refused.failure,
    'a1 and 2 more cannot be asked: head:22, through which they are reached, shows another key.',
  );
  const away = report({ ...allAt5, ...said(true) }, allAt5['head:22'], { hosts, wantedGeneration: 6 });
  assert.equal(away.failure, null);
  assert.deepEqual(
    away.waiting
      ?.filter(({ host }) => host !== 'other:22' && host !== 'head:22')
      .map(({ message }) => message),
    nodes.map(() => 'It cannot be asked: head:22, through which it is reached, shows another key.'),
  );
});

test('a login node that was up is down when it has not answered twice, and at once where it refuses', () => {
  const away = (misses: number, isUnreachable = true) => {
    const fault = new HostError('other does not answer', isUnreachable);
    fault.inARow = misses;
    const said = { ...allAt5, 'other:22': fault };
    const node = report(said, said['head:22'], { wereUp: new Set(['login1', 'login2']) }).loginNodes[1];
    return [node?.up, node?.missed];
  };
  assert.deepEqual(away(1), [true, true]);
  assert.deepEqual(away(2), [false, undefined]);
  assert.deepEqual(away(1, false), [false, undefined]);
});

test('a controller that is away leaves people confirmed, and its state unknown', () => {
  const found = report({ 'head:22': new HostError('head is away', true), 'other:22': facts(5) }, facts(5));
  assert.equal(found.manifestGeneration, 5);
  assert.deepEqual(found.scheduler?.ready, {
    status: 'Unknown',
    reason: 'ControllerUnreachable',
    message: 'head is away',
  });
  assert.equal(found.controlPlaneReady, false);
});

test('hosts without the list that was last applied are named, those that are furthest behind first', () => {
  const away = new HostError('a1 does not answer', true);
  const said = { 'head:22': facts(5), 'other:22': facts(4), 'a1.lab:22': away };
  const found = report(said);
  const message = 'other:22 answers, and has not taken it yet.';
  assert.deepEqual(found.waiting, [
    { host: 'a1', message: 'a1 does not answer' },
    { host: 'other:22', generation: 4, listVersion: 14, message },
  ]);
  assert.deepEqual(report(allAt5).waiting, []);
});

test("a person's own login node that is away is waited for where something was put there, and only there", () => {
  const perUser: SlurmSettings = {
    ...settings,
    loginMode: 'PerUser',
    login: [{ name: 'login', host: '{username}.lab', hostKey }],
  };
  const usernames = ['ada', 'bob', 'cy'];
  const away = (name: string) => new HostError(`${name} does not answer`, true);
  const said = {
    'head:22': facts(5),
    'ada.lab:22': facts(5),
    'bob.lab:22': away('bob'),
    'cy.lab:22': away('cy'),
  };
  // As after a restart of the service at which too many were waiting to be recalled.
  const found = report(said, said['head:22'], {
    settings: perUser,
    hosts: hostsOf(perUser, { nodes: [], usernames }),
    loginNodes: loginNodesOf(perUser, usernames),
    managed: new Set(['head:22', 'ada.lab:22', 'bob.lab:22']),
  });
  assert.deepEqual(found.waiting, [{ host: 'bob.lab:22', message: 'bob does not answer' }]);
});

test('a report says who was silent, and says nothing of machines without the controller', () => {
  const away = new HostError('is away', true);
  const silent = (said: Record<string, Facts | HostError>) => {
    const found = report(said, facts(5));
    return [found.silent, found.machines];
  };
  const [up, down] = [{ 'head:22': facts(5) }, { 'head:22': away }];
  assert.deepEqual(silent({ ...up, 'other:22': away, 'a1.lab:22': away }), [undefined, []]);
  assert.deepEqual(silent({ ...down, 'other:22': facts(5), 'a1.lab:22': away }), ['controller', undefined]);
  assert.deepEqual(silent({ ...down, 'other:22': away, 'a1.lab:22': away }), ['all', undefined]);
});

test('SUNKReady says why not', () => {
  const ready = (changes: Partial<Facts>) => report({ 'head:22': facts(5, changes) }).scheduler?.ready;
  const { controller } = facts(5);
  assert.ok(controller);
  const down = { up: false, message: 'fatal: x' };
  assert.equal(ready({ controller: { ...controller, ...down } })?.reason, 'ControllerDown');
  assert.equal(ready({ controller: { ...controller, accounting: down } })?.reason, 'AccountingDown');
  const refused = ready({ refused: { desiredGeneration: 9, message: 'unrecognized key' } });
  assert.deepEqual(
    [refused?.status, refused?.reason, refused?.observedGeneration],
    ['False', 'ConfigurationRejected', 9],
  );
  assert.equal(ready({})?.status, 'True');
});

test('a report that broke off is none', () => {
  assert.throws(() => readReport('host\thead\nlogin\tada\n'), /ends too early/);
});

const noRoot = process.getuid?.() === 0 ? false : 'a script runs here as root only';

test('on this machine the script runs without SSH', { skip: noRoot }, async () => {
  using directory = temporaryDirectory();
  const { login, controller } = settings;
  const here = {
    login: login.slice(0, 1).map((one) => ({ ...one, local: true })),
    controller: { ...controller, local: true },
  };
  const [host, ...others] = hostsOf(here, { nodes: [], usernames: [] });
  assert.ok(host && others.length === 0);
  const limits = { connectSeconds: 5, ms: 20_000 };
  const shell = createShell({ user: 'root', identityFile: undefined, directory: directory.path });
  const script = scriptOf([
    ['id', 'none'],
    ['action', 'observe'],
    ['config', '/nowhere/slurm.conf'],
    ['role', 'login'],
  ]);
  const said = readFacts(await shell.run(host, script, AbortSignal.timeout(20_000), limits), new Map());
  assert.deepEqual([said.settled, said.logins, said.problems], [undefined, [], []]);
  assert.ok(said.home, 'the file system of /home');
});

test('a login node on this machine is down once its sshd, which no script goes by, did not answer twice', {
  skip: noRoot || (spawnSync('/usr/sbin/sshd', ['-V']).error && 'sshd is not installed'),
}, async (t) => {
  using directory = temporaryDirectory();
  const [port = 0] = await freePorts(1);
  const key = join(directory.path, 'host_key');
  spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const config = join(directory.path, 'sshd_config');
  writeFileSync(config, `ListenAddress 127.0.0.1\nPort ${port}\nHostKey ${key}\n`);
  const sshd = spawn('/usr/sbin/sshd', ['-D', '-f', config], { stdio: 'ignore' });
  t.after(() => sshd.kill('SIGKILL'));
  const login = { name: 'login1', host: '127.0.0.1', port, hostKey, local: true };
  const driver = createSlurmDriver({
    name: 'alpha',
    organization: 'physics',
    gateway: { hostname: '127.0.0.1', port: 22, url: 'http://127.0.0.1' },
    clusterId: '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50',
    dataDir: directory.path,
    settings: { login: [login], controller: { local: true }, configFile: '/nowhere/slurm.conf' },
    endSessions() {},
    log: createLogger('silent'),
  });
  t.after(() => driver.close());
  const observe = async () => {
    const { loginNodes } = await driver.observe(AbortSignal.timeout(60_000));
    return loginNodes.map(({ up, missed }) => [up, missed]);
  };
  const answering = await eventually(observe, (nodes) => nodes[0]?.[0] === true);
  assert.deepEqual(answering, [[true, undefined]]);
  sshd.kill('SIGSTOP');
  assert.deepEqual(await observe(), [[true, true]]);
  assert.deepEqual(await observe(), [[false, undefined]]);
  sshd.kill('SIGCONT');
  assert.deepEqual(await observe(), [[true, undefined]]);
});

test('many compute nodes that hang hold up no login node', async () => {
  using directory = temporaryDirectory();
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const [closed = 0] = await freePorts(1);
  const hostAt = (address: string, port: number, role: Role): Host => ({
    address,
    reach: { host: '127.0.0.1', port },
    roles: new Set([role]),
    nodes: [],
  });
  const cluster = new SlurmCluster({
    name: 'alpha',
    organization: 'physics',
    gateway: { hostname: '127.0.0.1', port: 22, url: 'http://127.0.0.1' },
    clusterId: '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50',
    dataDir: directory.path,
    settings: { ...settings, manage: { ...settings.manage, identityFile: join(directory.path, 'key') } },
    endSessions() {},
    log: createLogger('silent'),
  });
  const observe = (host: Host) => cluster.run(host, 'observe', [], AbortSignal.timeout(60_000));
  const { port } = silent.address() as AddressInfo;
  const nodes = Array.from({ length: 40 }, (_, index) => observe(hostAt(`a${index}`, port, 'compute')));
  const login = observe(hostAt('login', closed, 'login'));
  try {
    const first = await Promise.race([login, ...nodes]);
    assert.equal(first, await login);
  } finally {
    for (const socket of sockets) socket.destroy();
    silent.close();
    await cluster.close();
    await Promise.allSettled(nodes);
  }
});

test('a configuration that may not be at fault is tried again ever later, up to an hour', () => {
  using directory = temporaryDirectory();
  const minutesAfter = (tries: number) => {
    writeFileSync(join(directory.path, 'trying'), `digest\t${tries}\n`);
    const command = `${prelude}${configuration}\nS=$1 T=$1; : > "$T/data"; date +%s; refuse words retry; cut -f 6 "$S/refused"`;
    const { stdout, stderr } = spawnSync('sh', ['-c', command, 'sh', directory.path], { encoding: 'utf8' });
    assert.equal(stderr, '');
    const [now = 0, until = 0] = stdout.split('\n').map(Number);
    return Math.floor((until - now) / 60);
  };
  assert.deepEqual([0, 1, 2, 5, 6, 60].map(minutesAfter), [1, 2, 4, 32, 64, 64]);
});

test('a controller on trial that is only slow is no fault of its configuration, nor is a slow clock the reason', () => {
  using directory = temporaryDirectory();
  const noise = 'error: High latency for 1000 calls to gettimeofday(): 2004 microseconds';
  const judge = (controller: string) => {
    const command = `${prelude}${configuration}\nT=$1 etc=/etc/slurm; : > "$T/out"
      sh -c "exec timeout -k 1 1 sh -c '$2'" > "$T/out" 2>&1 &
      survives $! && echo good || check_error`;
    const { stdout, stderr } = spawnSync('sh', ['-c', command, 'sh', directory.path, controller], {
      encoding: 'utf8',
    });
    assert.equal(stderr, '');
    return stdout.trim();
  };
  assert.equal(judge(`echo "${noise}"; exec /bin/sleep 60`), 'good');
  assert.equal(judge(`echo "${noise}"; echo "error: no such partition"; exit 1`), 'no such partition');
  assert.equal(judge('echo "fatal: cannot"; exec /bin/sleep 60'), 'cannot');
});

test('a script that does not end in time is a host that is away', { skip: noRoot }, async () => {
  const shell = createShell({ user: 'root', identityFile: undefined, directory: '/nowhere' });
  const host = { address: 'local', roles: new Set<never>(), nodes: [] };
  const pipes = () => process.getActiveResourcesInfo().filter((name) => name === 'PipeWrap').length;
  const before = pipes();
  await assert.rejects(
    shell.run(host, 'sleep 4', AbortSignal.timeout(20_000), { connectSeconds: 5, ms: 200 }),
    (error) =>
      error instanceof HostError && error.isUnreachable && /does not answer in time/.test(error.message),
  );
  // What the script has started goes on for a while, and is not listened to.
  await becomes(() => pipes() <= before, true);
});

test('the number of a person from a directory is what login nodes and the controller say, and no compute node', () => {
  const accounts = 'directory' as const;
  const own = {
    ...settings,
    login: settings.login.map((one) => ({ ...one, accounts })),
    controller: { ...settings.controller, accounts },
    compute: { host: '{name}.lab', accounts },
  };
  const found = (said: Record<string, [uid: number, gid: number]>) => {
    const numbers = Object.entries(said).map(([address, [uid, gid]]) => {
      return [address, { ...facts(5), numbers: [{ userId: 'u1', username: 'ada', uid, gid }] }] as const;
    });
    const hosts = hostsOf(own, { nodes: ['a1'], usernames: [] });
    const { numbers: kept, blocked } = report({ ...allAt5, ...Object.fromEntries(numbers) }, facts(5), {
      hosts,
    });
    return [...(kept ?? []), ...(blocked ?? []).map(({ message }) => message)];
  };
  const ada = { userId: 'u1', uid: 7, gid: 8 };
  assert.deepEqual(found({ 'head:22': [7, 8], 'other:22': [7, 8], 'a1.lab:22': [9, 9] }), [ada]);
  assert.deepEqual(found({ 'head:22': [7, 8] }), [ada], 'it is the controller and a login node');
  assert.deepEqual(found({ 'other:22': [7, 8] }), [], 'the controller has yet to say it');
  assert.deepEqual(found({ 'a1.lab:22': [7, 8] }), []);
  assert.deepEqual(found({ 'head:22': [7, 8], 'other:22': [7, 9] }), [
    'head:22 has the uid 7 and the gid 8 for ada, and other:22 has the uid 7 and the gid 9',
  ]);
  for (const [uid, gid] of [
    [0, 8],
    [7, 0],
    [2 ** 31, 8],
    [7.5, 8],
    [Number.NaN, 8],
  ] as const)
    assert.deepEqual(found({ 'head:22': [uid, gid] }), [
      `head:22 has the uid ${uid} and the gid ${gid} for ada, which no person can have`,
    ]);
});
