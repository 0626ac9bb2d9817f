/** The accounts' homes and, for the mount namespace, the passwd and group files that know them. */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Account } from './messages.ts';
import type { Place, PlaceDirs } from './place.ts';

const homesAtOnce = 50;

/** Makes the directories and files that a place is made of. Homes of earlier runs stay as they are. */
export function prepareDirs(dataDir: string, code: string): PlaceDirs {
  const dirs = {
    homes: join(dataDir, 'home'),
    passwd: join(dataDir, 'passwd'),
    group: join(dataDir, 'group'),
    code,
  };
  // 0711: without a mount namespace the accounts must pass through to their homes.
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  mkdirSync(dirs.homes, { recursive: true });
  chmodSync(dirs.homes, 0o755);
  writeNames(dirs, []);
  return dirs;
}

/** The home of an account as its sessions see it. */
export function homeOf(place: Place, dirs: PlaceDirs, account: Account): string {
  return place.kind === 'namespace' ? `/home/${account.username}` : join(dirs.homes, account.username);
}

/** Makes every account's home and checks that the account can get there. Throws a sentence for the operator. */
export async function prepareHomes(
  place: Place,
  dirs: PlaceDirs,
  accounts: readonly Account[],
): Promise<void> {
  for (const [index, account] of accounts.entries()) {
    // There can be thousands, and sessions under way go on.
    if (index % homesAtOnce === homesAtOnce - 1) await nextTurn();
    makeHome(place, join(dirs.homes, account.username), account);
  }
  if (place.kind === 'namespace') writeNames(dirs, accounts);
  const [first] = accounts;
  if (place.kind === 'root' && first) await requireReachable(dirs.homes, first);
}

function makeHome(place: Place, home: string, account: Account): void {
  const created = !existsSync(home);
  if (created) {
    mkdirSync(home, { mode: 0o700 });
    chmodSync(home, 0o700);
  }
  if (place.kind !== 'self') {
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

/** This machine's passwd and group with the accounts added. Written in place: the mount is of the inode. */
function writeNames(dirs: PlaceDirs, accounts: readonly Account[]): void {
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
  writeFileSync(dirs.passwd, lines([...users, ...read('/etc/passwd').filter(taken(2, uids, names))]));
  writeFileSync(dirs.group, lines([...groups, ...read('/etc/group').filter(taken(2, gids, names))]));
}

const plain = (field: string) => field.replace(/[:\p{Cc}]/gu, '_');
const lines = (all: string[]) => `${all.join('\n')}\n`;
const read = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []);
