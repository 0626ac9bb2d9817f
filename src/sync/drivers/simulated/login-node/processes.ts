/**
 * Ends what sessions have started, also what they left behind in the background. When an account goes, that is every
 * process with its number in any of the four fields where Linux keeps it: nothing else holds against somebody who hides
 * in namespaces and environments of their own. Sessions of other login nodes, where the same person has the same
 * number, are spared. When the login node stops, it is what runs in its mount namespace, or what has an environment
 * that names a connection to its port.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sandbox } from './sandbox.ts';

const grace = 150;
const rounds = 40;
/** So many searches end everything but what hides from them. */
const quickRounds = 10;
/** By which a login node's process is known: those of root cannot be imitated. */
const title = 'andromeda login node';

export interface Scope {
  sandbox: Sandbox;
  port: number;
  /** Left out: all processes of this login node, of every account. */
  accounts?: readonly { username: string; uid: number; gid: number }[];
}

/** Makes this process known as a login node's. */
export function nameLoginNode(): void {
  process.title = title;
}

/** Asks the processes to go, then makes them. Throws when some are left all the same. */
export async function endProcesses(scope: Scope): Promise<void> {
  if (signalAll(scope, 'SIGHUP') > 0) {
    signalAll(scope, 'SIGCONT');
    await sleep(grace);
  }
  for (let round = 0; signalAll(scope, 'SIGKILL') > 0; round++) {
    // One process may start another during the search: search again until there is none.
    if (round === rounds) throw new Error('Processes of accounts that must go cannot be ended.');
    if (round === quickRounds) await endNumbers(scope);
    await sleep(10);
  }
}

/**
 * Some start others faster than they can be found: the kernel ends all of a number at once. That spares nobody who comes
 * meanwhile, such as a session of another login node, so it comes last, and not where somebody is there to be spared.
 */
async function endNumbers(scope: Scope): Promise<void> {
  if (scope.sandbox.kind === 'self') return;
  const { spared } = findProcesses(scope);
  for (const account of scope.accounts ?? []) if (!spared.has(account.uid)) await endNumber(account);
}

async function endNumber({ uid, gid }: { uid: number; gid: number }): Promise<void> {
  const options = { uid, gid, cwd: '/', env: {}, stdio: 'ignore' as const };
  const child = spawn('/bin/sh', ['-c', 'kill -KILL -1'], options);
  await once(child, 'close').catch(() => undefined);
}

function signalAll(scope: Scope, signal: NodeJS.Signals): number {
  let found = 0;
  for (const pid of findProcesses(scope).found) {
    try {
      process.kill(pid, signal);
      found += 1;
    } catch {
      // It has ended in the meantime.
    }
  }
  return found;
}

/** The processes in question, and the numbers of accounts that have processes which are not. */
function findProcesses(scope: Scope): { found: number[]; spared: ReadonlySet<number> } {
  const spared = new Set<number>();
  const belongs = scope.accounts ? byAccount(scope, scope.accounts, spared) : byLoginNode(scope);
  const found = readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid !== process.pid && belongs(pid));
  return { found, spared };
}

function byLoginNode({ sandbox, port }: Scope): (pid: number) => boolean {
  if (sandbox.kind === 'namespace')
    return (pid) => namespaceOf(pid) === sandbox.id && statusOf(pid) !== undefined;
  return (pid) => isFromPort(pid, port);
}

function byAccount(
  { sandbox, port }: Scope,
  accounts: NonNullable<Scope['accounts']>,
  spared: Set<number>,
): (pid: number) => boolean {
  // Without root everybody has our own number, and the environment must do.
  if (sandbox.kind === 'self')
    return (pid) => accounts.some(({ username }) => isFromPort(pid, port, username));
  const numbers = new Set(accounts.map(({ uid }) => uid));
  const here = namespaceOf(process.pid);
  let others: Others | undefined;
  const isElsewhere = (pid: number) => {
    const namespace = namespaceOf(pid) ?? '';
    // Nobody who was let into the login node's namespace gets back from it to the machine's own.
    if (sandbox.kind === 'namespace' && (namespace === sandbox.id || namespace === here))
      return namespace === here;
    others ??= otherLoginNodes();
    return others.namespaces.has(namespace) || descendsFrom(pid, others.pids);
  };
  return (pid) => {
    const uids = statusOf(pid)?.uids.filter((uid) => numbers.has(uid)) ?? [];
    if (uids.length === 0) return false;
    const elsewhere = isElsewhere(pid);
    if (elsewhere) for (const uid of uids) spared.add(uid);
    return !elsewhere;
  };
}

interface Status {
  parent: number;
  /** Real, effective, saved and that of the file system. */
  uids: number[];
}

/** Undefined for what has ended, also where nobody has asked how yet. */
function statusOf(pid: number): Status | undefined {
  const text = read(`/proc/${pid}/status`);
  if (text === undefined || /^State:\s+[ZX]/m.test(text)) return undefined;
  const uids = /^Uid:\s+(.*)$/m.exec(text)?.[1]?.split(/\s+/).map(Number) ?? [];
  return { parent: Number(/^PPid:\s+(\d+)$/m.exec(text)?.[1] ?? 0), uids };
}

interface Others {
  pids: ReadonlySet<number>;
  /** The mount namespaces that they keep for their sessions. */
  namespaces: ReadonlySet<string>;
}

function otherLoginNodes(): Others {
  const pids = new Set<number>();
  const namespaces = new Set<string>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    if (!read(`/proc/${pid}/cmdline`)?.startsWith(title)) continue;
    if (!statusOf(pid)?.uids.every((uid) => uid === 0)) continue;
    pids.add(pid);
    for (const link of openFiles(pid)) if (link.startsWith('mnt:[')) namespaces.add(link);
  }
  return { pids, namespaces };
}

/** A process whose parent ended becomes a child of process 1, never of another account's process. */
function descendsFrom(pid: number, ancestors: ReadonlySet<number>): boolean {
  for (let at = statusOf(pid)?.parent ?? 0; at > 1; at = statusOf(at)?.parent ?? 0) {
    if (ancestors.has(at)) return true;
  }
  return false;
}

function openFiles(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => link(`/proc/${pid}/fd/${fd}`) ?? []);
  } catch {
    return [];
  }
}

function isFromPort(pid: number, port: number, username?: string): boolean {
  if (!statusOf(pid)) return false;
  const environment = `\0${read(`/proc/${pid}/environ`) ?? ''}`;
  return (
    environment.includes(` 127.0.0.1 ${port}\0`) &&
    environment.includes('\0SSH_CONNECTION=127.0.0.1 ') &&
    (username === undefined || environment.includes(`\0USER=${username}\0`))
  );
}

const namespaceOf = (pid: number) => link(`/proc/${pid}/ns/mnt`);

/** Undefined for somebody else's process, or one that has just ended. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

function link(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
