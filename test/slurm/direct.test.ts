/**
 * Logins past the gateway, on a machine of its own: its accounts, its homes and its sshd with the lines that
 * `andromeda admin gateway sshd` prints. The script of the driver runs there as it does on a login node.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { sshdLines } from '../../src/cli/admin/installation.ts';
import { toDay } from '../../src/domain/slurm/direct.ts';
import {
  accountRows,
  directRows,
  hostRows,
  type ScriptScope,
  versionRow,
} from '../../src/sync/slurm/desired.ts';
import type { Host } from '../../src/sync/slurm/hosts.ts';
import { type Row, scriptOf } from '../../src/sync/slurm/script.ts';
import { eventually } from '../support/app.ts';
import { limit } from '../support/limit.ts';
import { freePorts } from '../support/ports.ts';
import { keygen } from '../support/ssh-keys.ts';
import { clusterId, manifest, person, state } from './people.ts';

const skip = whyNot();

function whyNot(): string | false {
  if (process.getuid?.() !== 0) return 'namespaces are made by root only';
  const missing = ['/usr/sbin/sshd', '/usr/bin/rsync', '/usr/bin/setpriv'].find((path) => !existsSync(path));
  if (missing !== undefined) return `${missing} is not installed`;
  return spawnSync('unshare', ['-m', '-u', '-p', '-f', 'true']).status === 0
    ? false
    : 'this machine allows no namespaces';
}

const dayMs = 86_400_000;
const yesterday = toDay(Date.now() - dayMs);
/** Not the day of the start, which may end meanwhile. */
const lastDay = toDay(Date.now() + dayMs);
const dayAfter = toDay(Date.now() + 2 * dayMs);
const list = `/etc/ssh/andromeda-direct/${clusterId}.list`;
/** Where the gateway connects from; directly, people come from 127.0.0.1. */
const gateway = '127.0.0.2';

async function startMachine() {
  const directory = mkdtempSync(join(tmpdir(), 'andromeda-direct-'));
  const file = (name: string, text: string, mode = 0o600) => {
    writeFileSync(join(directory, name), text, { mode });
    return join(directory, name);
  };
  const [port = 0] = await freePorts(1);
  const keys = Object.fromEntries(
    ['host', 'gateway', 'bob', 'carol', 'mirror', 'rsa'].map((name) => {
      const key = keygen(...(name === 'rsa' ? ['-t', 'rsa', '-b', '2048'] : ['-t', 'ed25519']));
      return [name, { file: file(name, key.privateKey), line: key.publicKey.trim() }];
    }),
  );
  const lineOf = (name: string) => keys[name]?.line ?? '';
  file('gateway.pub', lineOf('gateway'));
  // A certificate of an authority that the site trusts.
  const signing = [
    '-q',
    '-s',
    file('ca', readFileSync(join(directory, 'gateway'), 'utf8')),
    '-I',
    'mirror',
    '-n',
    'mirror',
  ];
  spawnSync('ssh-keygen', [...signing, file('mirror.pub', lineOf('mirror'))]);
  const certificate = join(directory, 'mirror-cert.pub');
  assert.ok(existsSync(certificate));
  const lines = sshdLines({ publicKeys: [], from: gateway, hasDirect: true });
  file(
    'sshd_config',
    `Port ${port}\nListenAddress 127.0.0.1\nListenAddress ${gateway}\nHostKey ${directory}/host
PidFile ${directory}/sshd.pid\nUsePAM yes\nUseDNS no\nPrintMotd no\nSubsystem sftp internal-sftp\nPasswordAuthentication yes\nTrustedUserCAKeys ${directory}/gateway.pub\n${lines}\n`,
  );
  for (const name of ['home', 'var']) mkdirSync(join(directory, name));
  spawnSync('cp', ['-a', '/etc', join(directory, 'etc')]);
  const held = spawn(
    'unshare',
    [
      '-m',
      '-u',
      '-p',
      '-f',
      '--kill-child',
      '--mount-proc',
      'sh',
      '-c',
      `cd ${directory}; hostname login1
      sed -i /pam_motd/d etc/pam.d/sshd
      mount --bind etc /etc; mount --bind home /home; mount --bind var /var/lib; mount -t tmpfs -o mode=755 none /run; mkdir /run/sshd
      mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts /dev/pts; mount --bind /dev/pts/ptmx /dev/ptmx
      echo made; sleep 3600`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const stop = () => {
    held.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', stop);
  held.unref();
  await once(held.stdout, 'data');
  held.stdout.destroy();
  const init = spawnSync('pgrep', ['-P', `${held.pid}`], { encoding: 'utf8' }).stdout.trim();
  const on = (command: string, { input = '', path = '' } = {}) => {
    const args = ['-t', init, '-m', '-u', '-p', '--', 'sh', '-c', command];
    const env = { LC_ALL: 'C', PATH: `${path}/usr/sbin:/usr/bin:/sbin:/bin` };
    const { status, stdout, stderr } = spawnSync('nsenter', args, {
      env,
      input,
      encoding: 'utf8',
      timeout: limit(60_000),
    });
    return { status, out: `${stdout}${stderr}`.trim() };
  };
  const must = (command: string) => {
    const { status, out } = on(command);
    assert.equal(status, 0, `${command}: ${out}`);
    return out;
  };
  const authorize = (name: string, line: string) =>
    must(`cd /home/${name} && install -d -m 700 -o ${name} -g ${name} .ssh && printf '%s\\n' '${line}' > .ssh/authorized_keys &&
      chown ${name}:${name} .ssh/authorized_keys && chmod 600 .ssh/authorized_keys`);
  for (const name of ['bob', 'carol', 'mirror']) {
    must(`useradd -m -s /bin/bash ${name}`);
    authorize(name, lineOf(name));
  }
  must(
    `printf '%s\\n' '${lineOf('gateway')}' > /etc/ssh/andromeda_gateway.pub; chmod 644 /etc/ssh/andromeda_gateway.pub; chmod 755 ${directory}`,
  );
  must(`/usr/sbin/sshd -f ${directory}/sshd_config -E ${directory}/log`);
  const pid = () => readFileSync(join(directory, 'sshd.pid'), 'utf8');
  const options = [
    '-F',
    'none',
    '-o',
    'BatchMode=yes',
    '-o',
    'StrictHostKeyChecking=no',
    '-o',
    'UserKnownHostsFile=/dev/null',
  ];
  const flags = (key: string, from = '127.0.0.1') => [
    ...options,
    '-o',
    'LogLevel=ERROR',
    '-o',
    `BindAddress=${from}`,
    '-o',
    'IdentitiesOnly=yes',
    '-i',
    keys[key]?.file ?? '',
  ];
  const run = (program: string, args: string[], input = '') => {
    const { status, stdout, stderr } = spawnSync(program, args, {
      input,
      encoding: 'utf8',
      timeout: limit(30_000),
      env: { PATH: process.env['PATH'], TERM: 'xterm' },
    });
    return { status, out: stdout, err: stderr };
  };
  /** Logs in directly with the person's own key; says as whom, or why not. */
  const login = (
    name: string,
    { key = name, from = '127.0.0.1', more = [] as string[], command = 'id -un' } = {},
  ) => {
    const to = from === gateway ? gateway : '127.0.0.1';
    const { status, out, err } = run('ssh', [
      ...flags(key, from),
      ...more,
      '-p',
      `${port}`,
      `${name}@${to}`,
      command,
    ]);
    return status === 0
      ? out.trim()
      : /Permission denied|Connection closed|^$/.test(err)
        ? 'refused'
        : `${status} ${err}`;
  };
  const log = () => readFileSync(join(directory, 'log'), 'utf8');
  return {
    ...{ directory, port, certificate, on, must, authorize, lineOf, flags, run, login, pid, log },
    [Symbol.dispose]: stop,
  };
}

interface DirectLogin {
  name: string;
  until?: string;
}

const host: Host = { address: 'local', roles: new Set(['login']), nodes: [] };
const scope: ScriptScope = {
  ...{ clusterId, organization: 'physics' },
  settings: { login: [], controller: { local: true }, configFile: '/etc/slurm/slurm.conf' },
};
const gatewayAddress = { hostname: 'gw.example.org', port: 2222, url: 'https://lab.example.org' };

/** What the driver sends to a login node, with these people on the list. */
function scriptFor(
  direct: readonly DirectLogin[],
  accounts = [person('ada', 31_000)],
  action = 'apply',
): string {
  const people = direct.filter(({ until }) => until !== undefined).map(({ name }) => name);
  const services = direct.filter(({ until }) => until === undefined).map(({ name }) => name);
  const until = direct.find((one) => one.until)?.until ?? lastDay;
  const wanted = { ...manifest(accounts), direct: { until, people, keyless: [], services } };
  const rows: Row[] = [
    ...hostRows(scope, host, action),
    versionRow(wanted),
    ...accountRows(accounts, host),
    ...directRows(wanted, gatewayAddress),
  ];
  return scriptOf(rows);
}

test('logins past the gateway, on a real sshd', { skip }, async (t) => {
  using machine = await startMachine();
  const { on, must, login, authorize, lineOf } = machine;
  const sshd = machine.pid();
  const apply = (direct: readonly DirectLogin[], ...more: [ReturnType<typeof person>[]] | []) => {
    const { status, out } = on('sh -s', { input: scriptFor(direct, ...more) });
    assert.equal(status, 0, out);
    return out;
  };

  await t.test('before there is a list no one comes in directly, and everyone by the gateway', () => {
    assert.deepEqual(
      ['bob', 'carol', 'mirror'].map((name) => login(name)),
      ['refused', 'refused', 'refused'],
    );
    assert.equal(login('mirror', { more: ['-o', `CertificateFile=${machine.certificate}`] }), 'refused');
    assert.equal(login('bob', { key: 'gateway', from: gateway }), 'bob');
    assert.equal(login('bob', { from: gateway }), 'refused', 'from the gateway its key alone opens accounts');
  });

  await t.test(
    'who is named comes in with their own keys, of any kind, until the end of the day; others do not',
    () => {
      assert.doesNotMatch(apply([{ name: 'bob', until: lastDay }]), /^(problem|drift)/m);
      assert.deepEqual(
        ['bob', 'carol', 'mirror'].map((name) => login(name)),
        ['bob', 'refused', 'refused'],
      );
      assert.equal(login('bob', { key: 'carol' }), 'refused', 'another key');
      authorize(
        'bob',
        `${lineOf('bob')}\n${lineOf('rsa')}\n# a remark\ncommand="echo forced" ${lineOf('carol')}`,
      );
      assert.equal(login('bob', { key: 'rsa' }), 'bob');
      assert.equal(login('bob', { key: 'carol' }), 'forced', 'options of the line hold');
      assert.equal(login('bob', { key: 'gateway', from: gateway }), 'bob');
      authorize('bob', lineOf('bob'));
    },
  );

  await t.test('after the day it is closed, where nothing came meanwhile; services stay', () => {
    const scratch = must('mktemp -d');
    // The clock of the machine goes on, and nothing else changes.
    const real = must('command -v date');
    const setDay = (day: string) =>
      must(
        `printf '#!/bin/sh\\n[ "$*" != "-u +%%Y-%%m-%%d" ] || { echo ${day}; exit; }\\nexec ${scratch}/date "$@"\\n' > ${scratch}/then; chmod 755 ${scratch} ${scratch}/*`,
      );
    must(`cp ${real} ${scratch}/date`);
    setDay(lastDay);
    apply([{ name: 'bob', until: lastDay }, { name: 'mirror' }]);
    must(`mount --bind ${scratch}/then ${real}`);
    assert.equal(login('bob'), 'bob', 'on the last day');
    setDay(dayAfter);
    assert.deepEqual(
      ['bob', 'mirror'].map((name) => login(name)),
      ['refused', 'mirror'],
    );
    must(`umount ${real}`);
    assert.equal(login('bob'), 'bob');
    apply([{ name: 'bob', until: yesterday }, { name: 'mirror' }]);
    assert.deepEqual(
      ['bob', 'mirror'].map((name) => login(name)),
      ['refused', 'mirror'],
    );
    assert.equal(login('bob', { key: 'gateway', from: gateway }), 'bob');
  });

  await t.test('a list, a line or a program that is not whole lets no one in', () => {
    apply([{ name: 'bob', until: lastDay }]);
    for (const damage of [
      `rm ${list}`,
      `echo bob > ${list}`,
      `echo 'bob 2' > ${list}`,
      `echo 'bob 99' > ${list}`,
      `: > ${list}`,
      'rm /etc/ssh/andromeda-direct/keys',
      'rm -r /etc/ssh/andromeda-direct',
    ]) {
      must(damage);
      assert.equal(login('bob'), 'refused', damage);
      assert.match(
        on('sh -s', { input: scriptFor([{ name: 'bob', until: lastDay }], undefined, 'observe') }).out,
        /^drift\t\/etc/m,
        damage,
      );
      apply([{ name: 'bob', until: lastDay }]);
      assert.equal(login('bob'), 'bob', `mended after ${damage}`);
    }
  });

  await t.test(
    'keys that others can write to, or that root alone can read, open nothing, nor does a locked account',
    () => {
      must('chmod 660 /home/bob/.ssh/authorized_keys');
      assert.equal(login('bob'), 'refused', 'as with StrictModes');
      must('chmod 600 /home/bob/.ssh/authorized_keys; chmod 777 /home/bob');
      assert.equal(login('bob'), 'refused', 'a home that others can write to');
      must(
        `chmod 700 /home/bob; mv /home/bob/.ssh/authorized_keys /root/bob.pub; chown root /root/bob.pub; ln -s /root/bob.pub /home/bob/.ssh/authorized_keys`,
      );
      assert.equal(login('bob'), 'refused', 'the keys are read as the person');
      must('rm /home/bob/.ssh/authorized_keys');
      authorize('bob', lineOf('bob'));
      assert.equal(login('bob'), 'bob');
      must('usermod -e 1 bob');
      assert.equal(login('bob'), 'refused', 'the list keeps no one in');
      must('usermod -e "" bob');
      must('passwd -d bob');
      assert.equal(
        login('bob', { more: ['-o', 'PreferredAuthentications=password,keyboard-interactive'] }),
        'refused',
        'keys only',
      );
    },
  );

  await t.test('on terminals one line says what to do, and nothing else sees it', () => {
    apply([{ name: 'bob', until: lastDay }]);
    const { flags, run, port, directory } = machine;
    const target = 'bob@127.0.0.1';
    const shell = run('ssh', ['-tt', ...flags('bob'), '-p', `${port}`, target], 'exit\n');
    const said = shell.out.split('\r\n').filter((line) => line.includes('Direct logins'));
    const line = `Direct logins end after ${lastDay}. From now on register an SSH key at https://lab.example.org and use: ssh -p 2222 ${clusterId}.bob@gw.example.org`;
    assert.deepEqual(said, [line], shell.out + shell.err);
    const plain = run('ssh', [...flags('bob'), '-p', `${port}`, target, 'echo out']);
    assert.deepEqual([plain.out, plain.err], ['out\n', '']);
    const piped = run('ssh', [...flags('bob'), '-T', '-p', `${port}`, target], 'echo out\n');
    assert.deepEqual([piped.out, piped.err], ['out\n', ''], 'as VS Code does it');
    const login = run('ssh', [...flags('bob'), '-p', `${port}`, target, 'bash -lc "echo out"']);
    assert.deepEqual([login.out, login.err], ['out\n', '']);
    writeFileSync(join(directory, 'sent'), 'sent');
    for (const legacy of [[], ['-O']]) {
      const copied = run('scp', [
        ...legacy,
        ...flags('bob'),
        '-P',
        `${port}`,
        join(directory, 'sent'),
        `${target}:copied`,
      ]);
      assert.deepEqual([copied.status, copied.err], [0, ''], copied.err);
    }
    const remote = ['ssh', ...flags('bob'), '-p', `${port}`].join(' ');
    const synced = run('rsync', ['-e', remote, join(directory, 'sent'), `${target}:synced`]);
    assert.deepEqual([synced.status, synced.err], [0, ''], synced.err);
    assert.equal(must('cat /home/bob/copied /home/bob/synced'), 'sentsent');
    const others = run(
      'ssh',
      ['-tt', ...flags('gateway', gateway), '-p', `${port}`, `carol@${gateway}`],
      'exit\n',
    );
    assert.doesNotMatch(others.out, /Direct logins/);
  });

  await t.test('who is off the list is off it before anything else happens on the host', () => {
    apply([
      { name: 'bob', until: lastDay },
      { name: 'carol', until: lastDay },
    ]);
    must(`mkdir ${state}/accounts.new`);
    const { status } = on('sh -s', { input: scriptFor([{ name: 'carol', until: lastDay }]) });
    assert.notEqual(status, 0, 'the accounts could not be written');
    must(`rmdir ${state}/accounts.new`);
    assert.deepEqual(
      ['bob', 'carol'].map((name) => login(name)),
      ['refused', 'carol'],
    );
    // A list that cannot be written is removed, and the host does not count as having the new one.
    must(`mkdir ${list}.new`);
    const before = must(`cat ${state}/current`);
    const { out } = on('sh -s', { input: scriptFor([{ name: 'bob', until: lastDay }]) });
    assert.match(out, /^problem\tdirect\tthe list of direct logins cannot be written/m);
    assert.equal(must(`cat ${state}/current`), before);
    must(`rmdir ${list}.new`);
    assert.deepEqual(
      ['bob', 'carol'].map((name) => login(name)),
      ['refused', 'refused'],
    );
  });

  await t.test('killed at any write, it leaves the list before or the list after', () => {
    const [old, young] = [
      [{ name: 'bob', until: lastDay }],
      [{ name: 'carol', until: lastDay }, { name: 'mirror' }],
    ];
    apply(young);
    const whole = must(`cat ${list}`);
    apply(old);
    const former = must(`cat ${list}`);
    must('mkdir -p /root/shims');
    const count = '/root/shims/count';
    for (const program of ['mkdir', 'chmod', 'sync', 'mv', 'cat', 'rm', 'stat'])
      must(`cat > /root/shims/${program} << 'END'
#!/bin/sh
case "$*" in *andromeda-direct*|*direct.sums*)
  read -r left < ${count}; left=$((left - 1)); echo $left > ${count}
  [ $left -gt 0 ] || kill -KILL 0 ;;
esac
PATH=/usr/sbin:/usr/bin:/sbin:/bin exec ${program} "$@"
END
chmod 755 /root/shims/${program}`);
    const states = new Set<string>();
    let end = '';
    for (let step = 1; end === '' && step < 50; step += 1) {
      must(`echo ${step} > ${count}`);
      const { status, out } = on('exec setsid -w sh -s', { input: scriptFor(young), path: '/root/shims:' });
      if (status === 0) end = out;
      const now = on(`cat ${list}`).out;
      states.add(now === former ? 'before' : now === whole ? 'after' : now);
      assert.equal(login('bob') === 'bob', now === former, `killed at step ${step}`);
      apply(young);
      assert.equal(must(`cat ${list}; ls /etc/ssh/andromeda-direct | grep -c new || :`), `${whole}\n0`);
      apply(old);
    }
    assert.match(end, /^end$/m);
    assert.deepEqual([...states].sort(), ['after', 'before']);
  });

  await t.test('keys of a directory are asked of its program', async () => {
    must(`sed -i 's|keys %u %h .ssh/authorized_keys$|keys %u %h .ssh/none -- /bin/cat /etc/keys.%u|' ${machine.directory}/sshd_config
      printf '%s\\n' '${lineOf('carol')}' > /etc/keys.carol; cp /etc/keys.carol /etc/keys.bob; chmod 644 /etc/keys.*; kill -HUP $(cat ${machine.directory}/sshd.pid)`);
    apply([{ name: 'carol', until: lastDay }]);
    assert.equal(
      await eventually(
        async () => login('carol'),
        (said) => said === 'carol',
      ),
      'carol',
    );
    assert.equal(login('bob', { key: 'carol' }), 'refused');
  });

  await t.test('where no one is left, and on a cluster that is released, nothing of it is there', () => {
    apply([{ name: 'carol', until: lastDay }]);
    must('cp /etc/ssh/andromeda-direct/*.list /etc/ssh/andromeda-direct/another.list');
    apply([]);
    assert.equal(must('ls /etc/ssh/andromeda-direct'), 'another.list\nkeys', "another cluster's list stays");
    must('rm /etc/ssh/andromeda-direct/another.list');
    apply([{ name: 'carol', until: lastDay }]);
    const { status, out } = on('sh -s', { input: scriptFor([], [], 'release') });
    assert.equal(status, 0, out);
    assert.equal(on('ls -d /etc/ssh/andromeda-direct /etc/profile.d/andromeda-direct.sh').status, 2);
    assert.equal(login('carol'), 'refused');
  });

  await t.test('sshd was not restarted for any of it', () => assert.equal(machine.pid(), sshd));
});
