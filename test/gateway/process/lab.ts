/** A service that can be killed (service.ts), its gateway processes, a real sshd behind them, and a person with a key. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { stringify } from 'yaml';
import { alpha, eventually, physics } from '../../support/app.ts';
import { freePorts } from '../../support/ports.ts';
import { finished, firstOutput, startSshd } from '../lab.ts';
import { bundleService } from './bundle.ts';
import type { ServiceOrder } from './service.ts';

interface Entry {
  operation: string;
  target: string;
  reason: string;
  details: string;
}

export type Service = Awaited<ReturnType<typeof serve>>;
export type ProcessLab = Awaited<ReturnType<typeof openProcessLab>>;

const login = `${alpha}.root`;

export async function openProcessLab(gateway: object = {}, how: { as?: string[]; service?: string } = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'andromeda-process-'));
  const key = (name: string) => {
    const path = join(dir, name);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', path]);
    return path;
  };
  const text = (path: string) => readFileSync(`${path}.pub`, 'utf8').trim();
  const keys = { host: key('host'), client: key('client') };
  const [nodeKey, userKey] = [key('node'), key('user')];
  const [port = 0, sshdPort = 0, ...others] = await freePorts(5);
  writeFileSync(join(dir, 'authorized'), `${text(keys.client)}\n`);
  const sshd = startSshd(dir, sshdPort, nodeKey);
  const [platform, business, issuer] = others.map((one) => ({ listen: `127.0.0.1:${one}` }));
  const configFile = join(dir, 'andromeda.yaml');
  const identity = { embedded: issuer };
  const listening = { listen: `127.0.0.1:${port}`, port, ...gateway };
  writeFileSync(configFile, stringify({ platform, business, identity, gateway: listening }));
  const order: ServiceOrder = {
    ...{ configFile, keys, loginName: login, userKey: text(userKey) },
    loginNode: { host: '127.0.0.1', port: sshdPort, hostKey: text(nodeKey) },
    installation: physics,
  };
  writeFileSync(join(dir, 'order.json'), JSON.stringify(order));
  writeFileSync(join(dir, 'known_hosts'), `[127.0.0.1]:${port} ${text(keys.host)}\n`);
  const known = `UserKnownHostsFile=${join(dir, 'known_hosts')}`;
  const settings = [known, 'BatchMode=yes', 'IdentitiesOnly=yes', `User=${login}`, `Port=${port}`];
  const options = ['-F', 'none', '-i', userKey, ...settings.flatMap((setting) => ['-o', setting])];

  const children = new Set<ChildProcess>();
  const start = (program: string, args: string[]) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdin.on('error', () => {});
    children.add(child);
    child.once('close', () => children.delete(child));
    return child;
  };
  /** The gateway processes that there are. */
  const gateways = () => gatewaysOf(dir);
  return {
    dir,
    port,
    options,
    gateways,
    untilGateways: (wanted: (pids: number[]) => boolean) => eventually(async () => gateways(), wanted),
    start,
    /** Starts the service; resolves when it is ready. `build`: what it takes itself for. */
    async serve(build?: string) {
      const file = how.service ?? (await bundleService());
      const command = [...(how.as ?? []), process.execPath, file, join(dir, 'order.json')];
      return serve(start, [...command, ...(build ? [build] : [])]);
    },
    ssh(args: string[], input = '') {
      const child = start('ssh', [...options, '127.0.0.1', ...args]);
      child.stdin?.end(input);
      return finished(child);
    },
    /** A session that has printed its first line; how it ended, and what it said after that, is in `ended`. */
    async open(command = 'cat') {
      const child = start('ssh', [...options, '127.0.0.1', `echo up; ${command}`]);
      await firstOutput(child);
      return { child, ended: finished(child) };
    },
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill('SIGKILL');
      for (const pid of gateways()) process.kill(pid, 'SIGKILL');
      sshd.kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function serve(
  start: (program: string, args: string[]) => ChildProcess,
  [program = '', ...args]: string[],
) {
  const child = start(program, args);
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (part) => {
    if (process.env['LAB_LOG']) process.stderr.write(part);
    log += part;
  });
  // biome-ignore lint/style/noNonNullAssertion: it is a pipe
  const answers = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const next = async () => {
    const { value, done } = await answers.next();
    if (done) throw new Error(`the service ended: ${log}`);
    return JSON.parse(value);
  };
  await next();
  const ask = <T>(question: string): Promise<T> => {
    child.stdin?.write(`${question}\n`);
    return next();
  };
  return {
    pid: child.pid ?? 0,
    log: () => log,
    events: (name: string): Record<string, unknown>[] =>
      log
        .split('\n')
        .filter((line) => line.includes(`"event":"${name}"`))
        .map((line) => JSON.parse(line)),
    ask,
    /** What the trail has of sessions, once it is so much at least. */
    entries: (count: number) =>
      eventually(
        () => ask<Entry[]>('entries'),
        (all) => all.length >= count,
      ),
    /** Resolves when it has ended. */
    async kill(signal: NodeJS.Signals) {
      child.kill(signal);
      await exited;
    },
  };
}

/** The gateway processes whose service has its data below `dir`. */
export function gatewaysOf(dir: string): number[] {
  const file = join(dir, 'data/run/gateways.json');
  if (!existsSync(file)) return [];
  const known = JSON.parse(readFileSync(file, 'utf8')) as { processes: { pid: number }[] };
  return known.processes.map(({ pid }) => pid).filter(isAlive);
}

export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s*[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
