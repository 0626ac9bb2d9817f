/**
 * A login node (a real sshd), a gateway in front of it and a person's keys, for tests and measurements. Everything lives
 * in one temporary folder and one process; `close` leaves nothing behind.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Attempt, Decision, Route } from '../../src/gateway/ssh/decision.ts';
import type { GatewayEvent } from '../../src/gateway/ssh/events.ts';
import { type GatewayOptions, startGateway } from '../../src/gateway/ssh/index.ts';
import { createLogger } from '../../src/lib/log.ts';
import { becomes } from '../support/app.ts';
import { type Ended, finished } from '../support/heard.ts';
import { limit } from '../support/limit.ts';
import { freePorts } from '../support/ports.ts';
import { unless } from '../support/unless.ts';

/** Why these tests cannot run here, or false. */
export const whyNot: string | false =
  process.getuid?.() !== 0
    ? 'the tests start an sshd that logs in as root'
    : !existsSync('/usr/sbin/sshd')
      ? '/usr/sbin/sshd is missing'
      : false;
export const test = unless(whyNot);

export const LOGIN = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50.root';

export { finished };

export type Lab = Awaited<ReturnType<typeof openLab>>;

/** Starts sshd and a gateway on free loopback ports. */
export async function openLab(
  limits: GatewayOptions['limits'] = {},
  sshdLines: readonly string[] = [],
  more: Pick<GatewayOptions, 'trustedProxies' | 'proxyProtocol'> = {},
) {
  const dir = mkdtempSync(join(tmpdir(), 'andromeda-gateway-'));
  /** A fresh key pair's path. */
  const newKey = (name: string) => {
    const path = join(dir, name);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', path]);
    return path;
  };
  const [hostKey, clientKey, nodeKey, userKey] = ['host', 'client', 'node', 'user'].map(newKey);
  if (!hostKey || !clientKey || !nodeKey || !userKey) throw new Error('no keys');
  const publicText = (path: string) => readFileSync(`${path}.pub`, 'utf8').trim();

  const sshdPort = await freePort();
  writeFileSync(join(dir, 'authorized'), `${publicText(clientKey)}\n${publicText(userKey)}\n`);
  const sshd = startSshd(dir, sshdPort, nodeKey, sshdLines);
  await becomes(() => canConnect(sshdPort), true);

  const route: Route = {
    clusterId: LOGIN.split('.')[0] ?? '',
    userId: 'user_1',
    username: 'root',
    keyId: 'ssh_key_1',
    shell: '/bin/bash',
    loginNode: { host: '127.0.0.1', port: sshdPort, hostKey: publicText(nodeKey) },
  };
  const lab = {
    /** What authorize answers; tests change it. The signal: the client's connection has ended. */
    decide: {
      next: (to: Route, _?: AbortSignal): Decision | Promise<Decision> => ({ allowed: true, route: to }),
    },
    /** Gets what is recorded of sessions; tests change it. */
    recorder: { record(_: GatewayEvent) {} },
  };
  const events: Record<string, unknown>[] = [];
  /** What authorize was asked. */
  const asked: Attempt[] = [];
  const known = publicText(userKey);
  const gateway = await startGateway({
    listen: { host: '127.0.0.1', port: 0 },
    hostKeys: [readFileSync(hostKey, 'utf8')],
    clientKeys: [readFileSync(clientKey, 'utf8')],
    log: createLogger('debug', (line) => {
      if (process.env.LAB_LOG) process.stderr.write(line);
      events.push(JSON.parse(line));
    }),
    authorize: async (attempt, _openOn, gone) => {
      asked.push(attempt);
      return known.startsWith(attempt.publicKey) && attempt.loginName === LOGIN
        ? lab.decide.next(route, gone)
        : { allowed: false, reason: 'unknown key', message: '', disclose: false };
    },
    record: (event) => lab.recorder.record(event),
    limits,
    ...more,
  });
  writeFileSync(
    join(dir, 'known_hosts'),
    [
      `[127.0.0.1]:${gateway.port} ${publicText(hostKey)}`,
      `[127.0.0.1]:${sshdPort} ${publicText(nodeKey)}`,
    ].join('\n'),
  );
  const config = [
    `UserKnownHostsFile ${join(dir, 'known_hosts')}`,
    'StrictHostKeyChecking yes',
    `IdentityFile ${userKey}`,
    'IdentitiesOnly yes',
    'BatchMode yes',
    'Host gateway',
    '  HostName 127.0.0.1',
    `  Port ${gateway.port}`,
    `  User ${LOGIN}`,
    'Host inner',
    '  HostName 127.0.0.1',
    `  Port ${sshdPort}`,
    '  User root',
    '',
  ];
  writeFileSync(join(dir, 'ssh_config'), config.join('\n'));
  /** For ssh, scp and sftp: they lead to the gateway. */
  const options = ['-F', join(dir, 'ssh_config')];

  const children = new Set<ChildProcess>();
  const start = (program: string, args: string[]) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], cwd: dir, detached: true });
    // A group of its own, so that nothing of a pipeline outlives its test.
    const stop = setTimeout(() => {
      console.error(`${program} did not end within ${CHILD_MS / 1000} s and was killed: ${args.join(' ')}`);
      killGroup(child);
    }, CHILD_MS);
    child.once('close', () => clearTimeout(stop));
    child.stdin?.on('error', () => {});
    children.add(child);
    child.once('close', () => children.delete(child));
    return child;
  };
  const run = (program: string, args: string[], input: string | Buffer = '') => {
    const child = start(program, args);
    child.stdin?.end(input);
    return finished(child);
  };
  const close = async () => {
    for (const child of children) killGroup(child);
    await gateway.stop();
    sshd.kill();
    rmSync(dir, { recursive: true, force: true });
  };
  return Object.assign(lab, {
    dir,
    gateway,
    sshdPort,
    route,
    events,
    asked,
    options,
    newKey,
    run,
    start,
    ssh: (args: string[], input?: string | Buffer) => run('ssh', [...options, ...args], input),
    close,
    [Symbol.asyncDispose]: close,
  });
}

const CHILD_MS = limit(60_000);

function killGroup(child: ChildProcess): void {
  try {
    if (child.pid) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It is gone.
  }
}

/** The first that a child prints; an error when it ends before. */
export function firstOutput(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.stdout?.once('data', (data: Buffer) => resolve(`${data}`));
    child.once('close', (status) => reject(new Error(`it ended with ${status} before it said anything`)));
  });
}

/** A session that has printed its first line; how it ended is in `done`. */
export async function openSession(lab: Lab, command = 'exec cat', ...args: string[]) {
  const child = lab.start('ssh', [...lab.options, ...args, 'gateway', `echo up; ${command}`]);
  const done = finished(child);
  await firstOutput(child);
  return { child, done };
}

/** ssh to the gateway with this key and no other, without the lab's configuration file. */
export function loginWithKey(lab: Lab, key: string, ...more: string[]): Promise<Ended> {
  const options = ['IdentitiesOnly=yes', 'BatchMode=yes', `UserKnownHostsFile=${lab.dir}/known_hosts`];
  const only = ['-F', 'none', '-i', key, ...options.flatMap((option) => ['-o', option])];
  return lab.run('ssh', [...only, '-p', `${lab.gateway.port}`, ...more, '-l', LOGIN, '127.0.0.1', 'true']);
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** Whether something listens on a port of this machine, or on a socket's path. */
export function canConnect(at: number | string, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = typeof at === 'string' ? connect(at) : connect(at, host);
    socket.once('error', () => resolve(false)).once('close', () => resolve(false));
    socket.once('connect', () => {
      resolve(true);
      socket.destroy();
    });
  });
}

/** A login node, which lets in as anybody who has a key in the file `authorized`. */
export function startSshd(
  dir: string,
  port: number,
  hostKey: string,
  more: readonly string[] = [],
): ChildProcess {
  const lines = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${hostKey}`,
    `AuthorizedKeysFile ${join(dir, 'authorized')}`,
    'StrictModes no',
    'UsePAM no',
    'PidFile none',
    'PermitRootLogin yes',
    'AcceptEnv *',
    'MaxSessions 100',
    'MaxStartups 100',
    `Subsystem sftp ${existsSync('/usr/lib/openssh/sftp-server') ? '/usr/lib/openssh/sftp-server' : 'internal-sftp'}`,
    ...more,
    // Not the home of whoever runs the tests: what its shells read at a start may print, fail or stay. The first counts.
    `SetEnv HOME=${dir}`,
    '',
  ];
  writeFileSync(join(dir, 'sshd_config'), lines.join('\n'));
  return spawn('/usr/sbin/sshd', ['-D', '-e', '-f', join(dir, 'sshd_config')], {
    stdio: ['ignore', 'ignore', process.env.LAB_SSHD_LOG ? 'inherit' : 'ignore'],
  });
}
