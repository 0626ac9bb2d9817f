/** Creates the accounts' homes and, in namespaces, passwd and group files with the accounts. */
import { execFile, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Account } from './messages.ts';
import { ownDirectory, type Sandbox } from './sandbox.ts';
import { writeSlurmPrograms } from './slurm-programs.ts';

const homesAtOnce = 50;

export function homesBelow(dataDir: string): string {
  return join(dataDir, 'home');
}

/** Creates the directories of a sandbox, keeping existing homes. Returns the directory of the homes. */
export function prepareDirectories(dataDir: string): string {
  const homes = homesBelow(dataDir);
  // 0711: without namespaces the accounts must pass through to their homes, but may not list the others.
  for (const [dir, mode] of [
    [dataDir, 0o711],
    [homes, 0o711],
    [join(homes, ownDirectory), 0o700],
  ] as const) {
    mkdirSync(dir, { recursive: true, mode });
    chmodSync(dir, mode);
  }
  writeSlurmPrograms(homes);
  for (const name of ['etc', 'code', 'exec']) mkdirSync(join(homes, ownDirectory, name), { recursive: true });
  return homes;
}

/** Creates every account's home and checks that the account can reach it. Throws a message for the operator. */
export async function prepareHomes(
  sandbox: Sandbox,
  homes: string,
  accounts: readonly Account[],
): Promise<void> {
  for (const [index, { username, uid, gid }] of accounts.entries()) {
    // There may be thousands of accounts, and running sessions share this event loop.
    if (index % homesAtOnce === homesAtOnce - 1) await yieldToEventLoop();
    const home = join(homes, username);
    if (!existsSync(home)) {
      mkdirSync(home, { mode: 0o700 });
      chmodSync(home, 0o700);
    }
    if (sandbox !== 'self') lchownSync(home, uid, gid);
  }
  if (sandbox === 'namespaces') writeNames(accounts);
  const [first] = accounts;
  if (sandbox === 'root' && first) await requireReachable(homes, first);
}

async function requireReachable(homes: string, { username, uid, gid }: Account): Promise<void> {
  const args = ['-c', 'cd -- "$1"', 'sh', homes];
  await promisify(execFile)('/bin/sh', args, { uid, gid, cwd: '/', env: {} }).catch(() => {
    throw new Error(
      `The account ${username} (uid ${uid}) cannot reach its home below ${homes}: let everyone pass ` +
        'through the directories above it (chmod o+x), or put the data directory somewhere else.',
    );
  });
}

/** Temporary files of programs that edit accounts (lckpwdf(3), vipw(8)): `passwd.lock`, `group+`, `shadow.4711`. */
const passing = /\/etc\/[^/]+(\.lock|\.new|\.\d+|\+)$/;

/** Mounts a copy of the machine's /etc as the login node's own, in its namespaces. */
export function copyEtc(): void {
  const own = join('/home', ownDirectory, 'etc');
  const isPlain = (path: string) => {
    const stats = passing.test(path) ? undefined : lstatSync(path, { throwIfNoEntry: false });
    return stats !== undefined && (stats.isFile() || stats.isDirectory() || stats.isSymbolicLink());
  };
  cpSync('/etc', own, { recursive: true, verbatimSymlinks: true, filter: isPlain });
  chmodSync(own, 0o755);
  const { status } = spawnSync('mount', ['--bind', own, '/etc']);
  if (status !== 0) throw new Error('The login node cannot have an /etc of its own.');
}

const machine = new Map<string, string[]>();

/** Writes the machine's passwd and group, with the accounts added, to the login node's own /etc. */
function writeNames(accounts: readonly Account[]): void {
  const names = new Set(accounts.map(({ username }) => username));
  const write = (file: string, own: string[], ids: Set<string>) => {
    const before = machine.get(file) ?? readFileSync(file, 'utf8').split('\n');
    machine.set(file, before);
    const others = before.filter((line) => {
      const [name = '', , id = ''] = line.split(':');
      return line !== '' && !names.has(name) && !ids.has(id);
    });
    writeFileSync(`${file}.new`, `${[...own, ...others].join('\n')}\n`, { mode: 0o644 });
    renameSync(`${file}.new`, file);
  };
  const users = accounts.map(
    ({ username, uid, gid, shell }) => `${username}:x:${uid}:${gid}::/home/${username}:${plain(shell)}`,
  );
  write('/etc/passwd', users, new Set(accounts.map(({ uid }) => `${uid}`)));
  const groups = accounts.map(({ username, gid }) => `${username}:x:${gid}:`);
  write('/etc/group', groups, new Set(accounts.map(({ gid }) => `${gid}`)));
}

const plain = (field: string) => field.replace(/[:\p{Cc}]/gu, '_');
