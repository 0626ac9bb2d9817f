/**
 * Somebody with an account on a simulated login node of a service that is root, on a machine that grants their name all that it can
 * grant: what they try from a session. The machine is this one with an /etc of its own.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { freePorts } from '../../support/ports.ts';
import { firstLine, isRoot, missing, run, sshArguments, startParent } from './helpers.ts';

const programs = ['ssh', 'unshare', 'sudo', 'su', 'crontab', 'at', 'python3'];
const skip = isRoot ? programs.map(missing).find(Boolean) || false : 'only root changes to another user';

/** Sudo for everyone, also by name; root without a password; a shell that is root's for whoever runs it. */
const machine = `
cp -a /etc "$1/etc"; mount --bind "$1/etc" /etc; shift
echo 'ada ALL=(ALL) NOPASSWD: ALL
%admin ALL=(ALL) NOPASSWD: ALL
@include /etc/more-rules
#includedir ../rules.d' > /etc/sudoers.d/lab; chmod 440 /etc/sudoers.d/lab
echo 'eve ALL=(ALL) NOPASSWD: ALL' > /etc/more-rules; chmod 440 /etc/more-rules
mkdir /etc/rules.d; echo 'flo ALL=(ALL) NOPASSWD: ALL' > /etc/rules.d/flo; chmod 440 /etc/rules.d/flo
echo 'lab:x:29990:gil,mel' >> /etc/group
passwd -qd root
cp /bin/bash /etc/roots-shell; chmod 4755 /etc/roots-shell
exec "$@"`;

async function start(t: TestContext) {
  const { parent, at } = await startParent(t, ['unshare', '--mount', 'sh', '-ec', machine, 'sh', 'DIR']);
  /** In the account's own name on the same machine, but in no session. */
  const outside = (command: string) => {
    const enter = ['-t', String(parent.pid), '-m', '--', 'setpriv', '--reuid=24001', '--regid=24001'];
    return run('nsenter', [...enter, '--clear-groups', '--', 'bash', '-c', command]);
  };
  return { at, outside, ssh: (command: string) => run('ssh', sshArguments(at, command)) };
}

test('a session gets no right of another account, whatever the machine grants its name: sudo, su, crontab, at, setuid programs', {
  skip,
}, async (t) => {
  const { ssh, outside } = await start(t);
  const ways = ['/etc/roots-shell -p -c "id -u"', 'su -c "id -u"'];
  // What would be root without a session does not become it in one.
  for (const way of ways) assert.match((await outside(way)).stdout, /^0\n/, way);
  for (const way of [...ways, 'sudo -n id -u', 'sudo -n -u nobody id -u']) {
    const { stdout, code } = await ssh(`${way} < /dev/null`);
    assert.doesNotMatch(stdout, /^0$|^65534$/m, way);
    assert.ok(code !== 0 || stdout === '24001\n', `${way}: ${code} ${stdout}`);
  }
  assert.match((await ssh('sudo -n true')).stderr, /no new privileges/);
  for (const way of ['echo "* * * * * id" | crontab -', 'crontab -l', 'echo id | at now + 1 minute', 'atq'])
    assert.notEqual((await ssh(way)).code, 0, way);
  assert.equal(existsSync('/var/spool/cron/crontabs/ada'), false);
  const { stdout } = await ssh('grep -E "^(NoNewPrivs|Cap|Groups)" /proc/self/status | tr -d "\\t "');
  assert.match(stdout, /NoNewPrivs:1/);
  assert.equal(stdout.match(/^Cap\w+:0{16}$/gm)?.length, 5, stdout);
  assert.match(stdout, /^Groups:$/m);
});

test('a session reaches nothing that listens on the machine, and sees no process of it', {
  skip,
}, async (t) => {
  const { at, ssh, outside } = await start(t);
  const [port = 0] = await freePorts(1);
  let came = 0;
  const paths = ['/run', '/var/lib'].map((dir) => `${dir}/andromeda-test-${process.pid}.sock`);
  const servers = [port, ...paths].map((where) =>
    createServer((socket) => {
      came += 1;
      socket.end('the machine');
    }).listen(where),
  );
  t.after(() => servers.map((server) => server.close()));
  await Promise.all(
    servers.map((server) => server.listening || new Promise((done) => server.once('listening', done))),
  );
  for (const path of paths) chmodSync(path, 0o666);
  const reach = [
    `cat < /dev/tcp/127.0.0.1/${port}`,
    `cat < /dev/tcp/localhost/${port}`,
    ...paths.map(
      (path) =>
        `python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("${path}"); print(s.recv(99))'`,
    ),
  ];
  for (const way of reach) assert.match((await outside(way)).stdout, /the machine/, way);
  assert.equal(came, reach.length);
  for (const way of reach) assert.notEqual((await ssh(way)).code, 0, way);
  const forwarded = await run('ssh', ['-W', `127.0.0.1:${port}`, ...sshArguments(at)]);
  assert.match(forwarded.stderr, /forwarding failed/);
  assert.equal(came, reach.length);
  const { stdout } = await ssh('ls /sys/class/net; ls -d /proc/[0-9]* | wc -l; test -e /proc/$$ && echo own');
  const [net, processes = '', own] = stdout.trim().split('\n');
  assert.deepEqual([net, own], ['lo', 'own']);
  assert.ok(Number(processes) < 12, stdout);
});

test('a session that takes all that it can get leaves the machine its processes, memory and disk, and others their sessions', {
  skip,
}, async (t) => {
  const { at, ssh } = await start(t);
  // Bounded by itself as well, for a machine where nothing else bounds it.
  const bomb = `import os, time
count = 0
try:
  while count < 600:
    if os.fork() == 0: time.sleep(60); os._exit(0)
    count += 1
except OSError as error: print(error.strerror, flush=True)
print(count, flush=True)
time.sleep(60)
`;
  const bomber = spawn('ssh', sshArguments(at, 'exec python3 -c "$(cat)"'));
  t.after(() => bomber.kill('SIGKILL'));
  bomber.stdin.end(bomb);
  assert.match(await firstLine(bomber), /^Resource temporarily unavailable/);
  const bobs = ['-l', 'bob', ...sshArguments(at, 'echo in')];
  assert.equal((await run('ssh', bobs)).stdout, 'in\n');
  bomber.kill('SIGKILL');
  let freed = await ssh('echo free');
  for (let round = 0; freed.stdout !== 'free\n' && round < 100; round += 1) freed = await ssh('echo free');
  assert.equal(freed.stdout, 'free\n');
  const memory = await ssh(`python3 -c 'bytearray(3 << 30)'`);
  assert.match(memory.stderr, /MemoryError/);
  assert.match((await ssh('truncate -s 5G file')).stderr, /File too large|File size limit/i);
  assert.match(
    (await ssh('ulimit -Hn; ulimit -Hc; df -k --output=size /tmp | tail -1 | tr -d " "')).stdout,
    /^4096\n0\n262144\n$/,
  );
});

test('names that accounts, groups, their members or sudo rules of the machine have are taken', {
  skip,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'login-node-names-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const code = `import { findHostOwners } from '${join(import.meta.dirname, '../../../src/lib/host-ids.ts')}';
const accounts = ['ada', 'admin', 'sudo', 'root', 'bob', 'eve', 'flo', 'mel'].map((username, at) => ({ username, uid: 29_900 + at, gid: 29_900 + at }));
console.log(JSON.stringify(Object.fromEntries(await findHostOwners(accounts))));`;
  const ask = [process.execPath, '--input-type=module-typescript', '-e', code];
  const { stdout, stderr } = await run('unshare', ['--mount', 'sh', '-ec', machine, 'sh', dir, ...ask]);
  assert.deepEqual(
    JSON.parse(stdout || '{}'),
    {
      29900: 'sudo rules for ada',
      29901: 'sudo rules for admin',
      29902: 'sudo rules for sudo',
      29903: 'sudo rules for root',
      29905: 'sudo rules for eve',
      29906: 'sudo rules for flo',
      29907: 'mel in the group lab',
    },
    stderr,
  );
});
