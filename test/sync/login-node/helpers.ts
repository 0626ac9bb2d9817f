/** A started login node in a directory of its own, and the real clients that log in to it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
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

/** Where clients of a login node go, and the key that opens it. */
type Way = { key: string; node: { port: number } };

/** Starts the server of parent.ts, by way of a command that runs it; what it started is gone when the test is over. */
export async function startParent(t: TestContext, how: readonly string[] = [], mode = 0o755) {
  const dir = mkdtempSync(join(tmpdir(), 'login-node-parent-'));
  chmodSync(dir, mode);
  const key = join(dir, 'key');
  spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const server = [process.execPath, join(import.meta.dirname, 'parent.ts'), dir, `${key}.pub`];
  const [program = '', ...args] = [...how.map((word) => (word === 'DIR' ? dir : word)), ...server];
  const parent = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => parent.kill('SIGKILL'));
  t.after(() => rmSync(dir, { recursive: true }));
  const { port, pid } = JSON.parse(await firstLine(parent)) as { port: number; pid: number };
  return { dir, parent, pid, at: { key, node: { port } } };
}

export const firstLine = (child: ChildProcess) =>
  new Promise<string>((resolve) => child.stdout?.once('data', (text) => resolve(String(text).trim())));

/** What makes ssh talk to the bench alone. */
export function sshArguments({ key, node }: Way, ...rest: string[]): string[] {
  const settings = [
    `IdentityFile=${key}`,
    'IdentitiesOnly=yes',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'BatchMode=yes',
    'LogLevel=ERROR',
    `Port=${node.port}`,
  ];
  const options = settings.flatMap((setting) => ['-o', setting]);
  return ['-F', 'none', ...options, '-l', 'ada', '127.0.0.1', ...rest];
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

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** Its numbers in the namespaces that it is in, the outermost first; none when it has ended. */
function numbersOf(pid: number): number[] {
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

/** A server in Python: it prints its port, sends back what it gets, and its own end after the other's. */
export const echo = `import socketserver
class Echo(socketserver.BaseRequestHandler):
  def handle(self):
    while data := self.request.recv(65536): self.request.sendall(data)
socketserver.ThreadingTCPServer.request_queue_size = 64
server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo)
server.daemon_threads = True
print(server.server_address[1])
server.serve_forever()
`;
