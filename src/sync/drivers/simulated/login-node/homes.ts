/** The accounts' homes and, for the mount namespace, the passwd and group files that know them. */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  ftruncateSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  watch,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Logger } from '../../../../lib/log.ts';
import type { Account } from './messages.ts';
import { areNamesMounted, mountNames, ownDirectory, type Sandbox, type SandboxFiles } from './sandbox.ts';

const homesAtOnce = 50;

/** Makes the directories and files that a sandbox is made of. Homes of earlier runs stay as they are. */
export function prepareFiles(dataDir: string, code: string): SandboxFiles {
  const homes = join(dataDir, 'home');
  const own = join(homes, ownDirectory);
  const files = { homes, passwd: join(own, 'passwd'), group: join(own, 'group'), code };
  // 0711: without a mount namespace the accounts must pass through to their homes, but nobody may list whose there are.
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  mkdirSync(homes, { recursive: true });
  chmodSync(homes, 0o711);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  // Where an earlier version had them, for everybody to read.
  for (const name of ['passwd', 'group']) rmSync(join(dataDir, name), { force: true });
  writeNames(files, []);
  return files;
}

/** The home of an account as its sessions see it. */
export function homeOf(sandbox: Sandbox, files: SandboxFiles, account: Account): string {
  return sandbox.kind === 'namespace' ? `/home/${account.username}` : join(files.homes, account.username);
}

/** Makes every account's home and checks that the account can get there. Throws a sentence for the operator. */
export async function prepareHomes(
  sandbox: Sandbox,
  files: SandboxFiles,
  accounts: readonly Account[],
): Promise<void> {
  for (const [index, account] of accounts.entries()) {
    // There can be thousands, and sessions under way go on.
    if (index % homesAtOnce === homesAtOnce - 1) await yieldToEventLoop();
    makeHome(sandbox, join(files.homes, account.username), account);
  }
  if (sandbox.kind === 'namespace') writeNames(files, accounts);
  const [first] = accounts;
  if (sandbox.kind === 'root' && first) await requireReachable(files.homes, first);
}

function makeHome(sandbox: Sandbox, home: string, account: Account): void {
  const created = !existsSync(home);
  if (created) {
    mkdirSync(home, { mode: 0o700 });
    chmodSync(home, 0o700);
  }
  if (sandbox.kind !== 'self') {
    const { uid, gid } = lstatSync(home);
    if (created) chownSync(home, account.uid, account.gid);
    else if (uid !== account.uid || gid !== account.gid) lchownSync(home, account.uid, account.gid);
  }
}

async function requireReachable(homes: string, account: Account): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const { uid, gid } = account;
    execFile('/bin/sh', ['-c', 'cd -- "$1"', 'sh', homes], { uid, gid, cwd: '/', env: {} }, (error) => {
      if (!error) return resolve();
      reject(
        new Error(
          `The account ${account.username} (uid ${uid}) cannot reach its home below ${homes}: let everyone pass ` +
            'through the directories above it (chmod o+x), or put the data directory somewhere else.',
        ),
      );
    });
  });
}

/**
 * Keeps the account names in the namespace: when this machine's passwd or group is replaced, as every tool that edits
 * them does it, the mount on it is gone. Returns what checks, and mounts again where that is so.
 */
export function keepNamesMounted(
  sandbox: Sandbox,
  files: SandboxFiles,
  accounts: () => readonly Account[],
  log: Logger,
): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  if (sandbox.kind !== 'namespace') return () => last;
  let written = versionOfNames();
  const isCurrent = () => areNamesMounted(sandbox, files) && written === versionOfNames();
  const repair = () => {
    if (isCurrent()) return last;
    last = last
      .then(async () => {
        if (isCurrent()) return;
        written = versionOfNames();
        writeNames(files, accounts());
        await mountNames(sandbox, files);
      })
      .catch((error) => log.warn('login_node_names_lost', { error }));
    return last;
  };
  try {
    const watcher = watch('/etc', { persistent: false }, () => void repair());
    watcher.on('error', () => watcher.close());
  } catch {
    // Then it is noticed when the next session begins.
  }
  return repair;
}

/** This machine's passwd and group with the accounts added. Written in place: the mount is of the inode. */
function writeNames(files: SandboxFiles, accounts: readonly Account[]): void {
  const taken = (position: number, ids: Set<string>, names: Set<string>) => (line: string) => {
    const fields = line.split(':');
    return line !== '' && !names.has(fields[0] ?? '') && !ids.has(fields[position] ?? '');
  };
  const names = new Set(accounts.map((account) => account.username));
  const uids = new Set(accounts.map((account) => String(account.uid)));
  const gids = new Set(accounts.map((account) => String(account.gid)));
  const users = accounts.map(
    ({ username, uid, gid, shell }) => `${username}:x:${uid}:${gid}::/home/${username}:${plain(shell)}`,
  );
  const groups = accounts.map(({ username, gid }) => `${username}:x:${gid}:`);
  writeInSandbox(files.passwd, lines([...users, ...read('/etc/passwd').filter(taken(2, uids, names))]));
  writeInSandbox(files.group, lines([...groups, ...read('/etc/group').filter(taken(2, gids, names))]));
}

/** Another text where this machine's passwd or group is another than before. */
function versionOfNames(): string {
  const states = ['/etc/passwd', '/etc/group'].map((file) => statSync(file, { throwIfNoEntry: false }));
  return states.map((state) => `${state?.ino} ${state?.mtimeMs}`).join(', ');
}

/** At no time is the file shorter than what it was or will be: sessions read it meanwhile. */
function writeInSandbox(file: string, text: string): void {
  const bytes = Buffer.from(text);
  if (existsSync(file) && bytes.equals(readFileSync(file))) return;
  const fd = openSync(file, constants.O_WRONLY | constants.O_CREAT, 0o644);
  try {
    writeSync(fd, bytes, 0, bytes.length, 0);
    ftruncateSync(fd, bytes.length);
    fchmodSync(fd, 0o644);
  } finally {
    closeSync(fd);
  }
}

const plain = (field: string) => field.replace(/[:\p{Cc}]/gu, '_');
const lines = (all: string[]) => `${all.join('\n')}\n`;
const read = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []);
