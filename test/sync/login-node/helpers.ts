/** A started login node in a directory of its own, and the real clients that log in to it. */

import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '../../../src/lib/log.ts';
import type { Account } from '../../../src/sync/simulated/login-node/messages.ts';
import { limit } from '../../support/limit.ts';
import { type ListeningNode, type ListeningNodeOptions, startListeningNode } from './listening.ts';

export const isRoot = process.getuid?.() === 0;

/** A reason to skip, or false: for tests that need a program of this machine. */
export function missing(program: string): string | false {
  const found = spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
  return found ? false : `${program} is not installed here`;
}

export const ada: Account = {
  username: 'ada',
  uid: 20001,
  gid: 20001,
  shell: '/bin/bash',
};
export const bob: Account = {
  username: 'bob',
  uid: 20002,
  gid: 20002,
  shell: '/bin/bash',
};

export interface Bench {
  dir: string;
  node: ListeningNode;
  key: string;
  events: { event: string; level: string }[];
  options: ListeningNodeOptions;
}

export interface Result {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Starts a login node; it and its directory are gone when the test is over. */
export async function bench(
  t: { after(cleanup: () => Promise<void>): unknown },
  more: Partial<ListeningNodeOptions> = {},
): Promise<Bench> {
  const dir = mkdtempSync(join(tmpdir(), 'login-node-'));
  // The accounts must get through to their homes where there is no mount namespace.
  chmodSync(dir, 0o755);
  const key = join(dir, 'key');
  spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const events: Bench['events'] = [];
  const options: ListeningNodeOptions = {
    dataDir: join(dir, 'data'),
    authorizedKeys: () => [readFileSync(`${key}.pub`, 'utf8').trim()],
    accounts: [ada, bob],
    log: createLogger('debug', (line) => events.push(JSON.parse(line))),
    ...more,
  };
  let node: ListeningNode | undefined;
  t.after(async () => {
    await node?.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  node = await startListeningNode(options);
  return { dir, node, key, events, options };
}

/** The options that make ssh, scp and sftp talk to the bench alone. */
export function clientOptions({ key, node }: Pick<Bench, 'key' | 'node'>): string[] {
  const settings = [
    `IdentityFile=${key}`,
    'IdentitiesOnly=yes',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'BatchMode=yes',
    'LogLevel=ERROR',
    `Port=${node.port}`,
  ];
  return ['-F', 'none', ...settings.flatMap((setting) => ['-o', setting])];
}

export function sshArguments(at: Pick<Bench, 'key' | 'node'>, ...rest: string[]): string[] {
  return [...clientOptions(at), '-l', 'ada', '127.0.0.1', ...rest];
}

/** Runs a program to its end. */
export function run(program: string, args: string[], input: string | Buffer = ''): Promise<Result> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { timeout: limit(20_000) });
    const out: Buffer[] = [];
    const errors: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
    child.on('error', reject);
    child.stdin.on('error', () => undefined);
    child.on('close', (code) =>
      resolve({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(errors).toString() }),
    );
    child.stdin.end(input);
  });
}

export const ssh = (at: Bench, command: string, input: string | Buffer = '') =>
  run('ssh', sshArguments(at, command), input);

/** Waits until something holds, at most 30 seconds: processes start slowly where many tests run. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let round = 0; round < 600; round++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`It did not come to pass that ${what}.`);
}

/** The number on this machine of the process that sessions on a login node know as `inner`. */
export function outside(node: { pid: number }, inner: string | number): number {
  const found = besides(node).find((pid) => numbersOf(pid).at(-1) === Number(inner));
  if (found === undefined)
    throw new Error(`no process of the login node ${node.pid} has the number ${inner}`);
  return found;
}

/** The process that serves, which is not the one that was started where it has namespaces. */
export function serving(node: { pid: number }): number {
  const isServing = (pid: number) => commandOf(pid).startsWith('andromeda login node');
  if (isServing(node.pid)) return node.pid;
  const found = besides(node).find(isServing);
  if (found === undefined) throw new Error(`the login node ${node.pid} does not serve`);
  return found;
}

/** Whether something on the login node, in namespaces of its own, runs the program. */
export const runs = (node: { pid: number }, program: string) =>
  besides(node).some((pid) => commandOf(pid).split('\0')[0] === program);

/** The processes where those that a login node started are. */
function besides({ pid }: { pid: number }): number[] {
  const space = link(`/proc/${pid}/ns/pid_for_children`);
  const all = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return all.filter((one) => link(`/proc/${one}/ns/pid`) === space);
}

export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** Its numbers in the namespaces that it is in, the outermost first; none when it has ended. */
export function numbersOf(pid: number): number[] {
  try {
    const [, numbers = ''] = /^NSpid:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return numbers.split(/\s+/).map(Number);
  } catch {
    return [];
  }
}

function link(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

export function alive(pid: number): boolean {
  try {
    // A dead process that nobody has waited for yet does not count.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
