/**
 * A network that only a hop can reach: a namespace in which an sshd is the hop, on an address that this machine reaches, and
 * another answers on each address of its loopback, as so many hosts. Needs root.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { canConnect } from '../gateway/lab.ts';
import { becomes } from './app.ts';
import { temporaryDirectory } from './directory.ts';

/** Why there can be no such network here, or false. */
export const noHopNetwork: string | false =
  process.getuid?.() !== 0
    ? 'root makes networks'
    : !existsSync('/usr/sbin/sshd') || spawnSync('unshare', ['-n', 'ip', 'link']).status !== 0
      ? 'sshd, ip or namespaces are missing'
      : false;

export type HopNetwork = Awaited<ReturnType<typeof openHopNetwork>>;

/** `authorized`: public keys that open root's account on the hop and on the hosts. */
export async function openHopNetwork(authorized: readonly string[] = []) {
  const directory = temporaryDirectory();
  const dir = directory.path;
  const path = (name: string) => join(dir, name);
  for (const name of ['hop', 'node', 'manage'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path(name)]);
  const publicKey = (name: string) =>
    readFileSync(path(`${name}.pub`), 'utf8')
      .split(' ')
      .slice(0, 2)
      .join(' ');
  writeFileSync(path('authorized'), [publicKey('manage'), ...authorized, ''].join('\n'));

  const space = spawn('unshare', ['-n', 'sh', '-c', 'ip link set lo up; echo; exec sleep 3600'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(space.stdout, 'data');
  const number = Math.floor(Math.random() * 0x3fff);
  const net = `198.18.${number >> 6}.${(number & 63) * 4}`;
  const at = (last: number) => net.replace(/\d+$/, (text) => `${Number(text) + last}`);
  const inside = ['-t', `${space.pid}`, '-n'];
  const ip = (...args: string[]) => execFileSync('ip', args);
  const [outer, inner] = [`hop${number}a`, `hop${number}b`];
  ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', inner, 'netns', `${space.pid}`);
  ip('address', 'add', `${at(1)}/30`, 'dev', outer);
  ip('link', 'set', outer, 'up');
  execFileSync('nsenter', [...inside, 'ip', 'address', 'add', `${at(2)}/30`, 'dev', inner]);
  execFileSync('nsenter', [...inside, 'ip', 'link', 'set', inner, 'up']);

  const logs: Record<string, string> = { hop: '', node: '' };
  function startSshd(name: 'hop' | 'node', lines: readonly string[]): ChildProcess {
    const config = [
      `HostKey ${path(name)}`,
      `AuthorizedKeysFile ${path('authorized')}`,
      'StrictModes no',
      'UsePAM no',
      'PidFile none',
      'PermitRootLogin yes',
      `Subsystem sftp internal-sftp`,
      ...lines,
      `SetEnv HOME=${dir}`,
      '',
    ];
    writeFileSync(path(`${name}.conf`), config.join('\n'));
    const sshd = spawn(
      'nsenter',
      [...inside, 'setsid', '/usr/sbin/sshd', '-D', '-e', '-f', path(`${name}.conf`)],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    sshd.stderr.setEncoding('utf8').on('data', (text: string) => {
      logs[name] += text;
    });
    return sshd;
  }

  const hop = { host: at(2), port: 22, hostKey: publicKey('hop') };
  let hopSshd: ChildProcess | undefined;
  const network = {
    dir,
    hop,
    logs,
    identityFile: path('manage'),
    /** The key of the hosts behind the hop, which are 127.0.0.1 to 127.255.255.254. */
    nodeKey: publicKey('node'),
    nodePort: 2222,
    async startHop(...lines: string[]) {
      hopSshd = startSshd('hop', [`ListenAddress ${hop.host}:${hop.port}`, ...lines]);
      await becomes(() => canConnect(hop.port, hop.host), true);
    },
    /** Ends the hop's sshd with all its connections, as a machine that is switched off. */
    async stopHop() {
      const pid = hopSshd?.exitCode === null && hopSshd.signalCode === null ? hopSshd.pid : undefined;
      if (hopSshd === undefined || pid === undefined) return;
      const ended = once(hopSshd, 'exit');
      killAll(pid);
      await ended;
    },
    /** The hop's sshd answers no more, while its connections stay and new ones are taken. */
    hangHop() {
      if (hopSshd?.pid) signalAll(hopSshd.pid, 'SIGSTOP');
    },
    /** How many TCP connections to the hop are open. */
    hopConnections: () =>
      `${execFileSync('ss', ['-Htn', 'state', 'established', 'dst', hop.host])}`.split('\n').filter(Boolean)
        .length,
    /** The processes of ssh that were started in this directory or below it. */
    clients: () => pgrep('-x', 'ssh').filter((pid) => cwdOf(pid).startsWith(dir)),
    async [Symbol.asyncDispose]() {
      await network.stopHop();
      if (nodes.pid) killAll(nodes.pid);
      space.kill('SIGKILL');
      if (space.exitCode === null && space.signalCode === null) await once(space, 'exit');
      directory[Symbol.dispose]();
    },
  };
  const nodes = startSshd('node', [`Port ${network.nodePort}`, 'MaxStartups 200']);
  await network.startHop();
  return network;
}

/** Ends a process and all that it started. */
function killAll(pid: number): void {
  signalAll(pid, 'SIGKILL');
}

/** Of the processes that a process started, some may be ending by themselves. */
function signalAll(pid: number, signal: 'SIGKILL' | 'SIGSTOP'): void {
  for (const child of pgrep('-P', `${pid}`)) signalAll(child, signal);
  try {
    process.kill(pid, signal);
  } catch {}
}

function pgrep(...args: string[]): number[] {
  return `${spawnSync('pgrep', args).stdout}`.split('\n').filter(Boolean).map(Number);
}

function cwdOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '';
  }
}
