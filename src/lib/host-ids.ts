/** Accounts, groups and processes of this host: accounts that Andromeda makes must not reuse their names and numbers. */
import { execFile, execFileSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/** Whether there is such a process, of any account. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0); // signal 0 only asks
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** UIDs and GIDs in the host's own files; directories (LDAP) are not queried. */
export function listHostIds(): number[] {
  return ['/etc/passwd', '/etc/group'].flatMap((file) =>
    linesOf(file)
      .map((line) => Number(line.split(':')[2]))
      .filter((id) => Number.isInteger(id)),
  );
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}

/** The fields of an account or a group, by name or number, in the format of passwd(5) and group(5); directories are queried too. */
export function findHostEntry(database: 'passwd' | 'group', key: string): string[] | undefined {
  const lines = key.startsWith('-') ? [] : entriesOf(database, key);
  return lines.map((line) => line.split(':')).find(([name, , id]) => name === key || id === key);
}

function entriesOf(database: 'passwd' | 'group', key: string): string[] {
  try {
    return execFileSync('getent', [database, key], { encoding: 'utf8', timeout: 10_000 }).split('\n');
  } catch {
    // There is no getent, or no such entry.
    return linesOf(`/etc/${database}`);
  }
}

/** Limit on keys in one query, as an argument list has a maximum length. */
const batchSize = 1000;

/**
 * The owners on this host, directories included, of the numbers and names of `accounts`, by number: `the account
 * NAME`. Names in sudo rules count, as rights go by name there. An account of the same name and number that Andromeda
 * made here for a Slurm cluster belongs to the same person.
 */
export function findHostOwners(accounts: readonly HostAccount[]): Promise<Map<number, string>> {
  const query = JSON.stringify(accounts.map(({ username, uid, gid }) => [username, uid, gid]));
  // Cached: the clusters of an organization all ask the same at the same time.
  if (latest?.query !== query || performance.now() - latest.at > answerLastsMs) {
    latest = { query, at: performance.now(), answer: askHost(accounts) };
  }
  return latest.answer;
}

interface HostAccount {
  username: string;
  uid: number;
  gid: number;
}

const answerLastsMs = 5_000;
let latest: { query: string; at: number; answer: Promise<Map<number, string>> } | undefined;

async function askHost(accounts: readonly HostAccount[]): Promise<Map<number, string>> {
  const owners = new Map<number, string>();
  const read = new Set<string>();
  const ruled = new Set(
    ['/etc/sudoers', ...globSync('/etc/sudoers.d/*')].flatMap((file) => readSudoRules(file, read)),
  );
  const groupOf = readGroupMembers();
  for (const { username, uid } of accounts)
    if (ruled.has(username)) owners.set(uid, `sudo rules for ${username}`);
  for (let from = 0; from < accounts.length; from += batchSize) {
    const some = accounts.slice(from, from + batchSize);
    const passwd = await getent(
      'passwd',
      new Set(some.flatMap(({ username, uid }) => [username, String(uid)])),
    );
    const group = await getent(
      'group',
      new Set(some.flatMap(({ username, gid }) => [username, String(gid)])),
    );
    for (const account of some) {
      const hasAccount = passwd.some(([name]) => name === account.username);
      const owner =
        ownerAmong('account', passwd, account) ??
        ownerAmong('group', group, account) ??
        // An account that Andromeda made may be in groups.
        (hasAccount ? undefined : groupOf.get(account.username));
      if (owner !== undefined && !owners.has(account.uid)) owners.set(account.uid, owner);
    }
  }
  return owners;
}

function ownerAmong(
  kind: 'account' | 'group',
  lines: readonly string[][],
  { username, uid, gid }: HostAccount,
): string | undefined {
  const ours = kind === 'account' ? uid : gid;
  const other = lines.find(([name, , id, , comment]) => {
    const [hasName, hasNumber] = [name === username, Number(id) === ours];
    const isSame = hasName && hasNumber && (kind === 'group' || comment === 'Andromeda');
    return (hasName || hasNumber) && !isSame;
  });
  return other && `the ${kind} ${other[0]}`;
}

/** Members of the host's groups, perhaps without an account, with a phrase that names the group. */
function readGroupMembers(): Map<string, string> {
  return new Map(
    linesOf('/etc/group').flatMap((line) => {
      const [group, , , members = ''] = line.split(':');
      return members
        .split(',')
        .map((member): [string, string] => [member, `${member} in the group ${group}`]);
    }),
  );
}

/** Every word in a sudoers file and its includes, as rules can name an account or a group in several ways. */
function readSudoRules(file: string, read: Set<string>): string[] {
  if (read.has(file)) return [];
  read.add(file);
  return linesOf(file).flatMap((line) => {
    const [, ofDirectory, path] = /^\s*[@#]include(dir)?\s+"?([^"]+?)"?\s*$/.exec(line) ?? [];
    if (path === undefined) return line.replace(/#(?!\d).*/, '').split(/[^\w.-]+/);
    const included = resolve(dirname(file), path.replaceAll('%h', hostname().replace(/\..*/, '')));
    const files = ofDirectory
      ? globSync('*', { cwd: included }).map((name) => join(included, name))
      : [included];
    return files.flatMap((one) => readSudoRules(one, read));
  });
}

/** Never rejects: without getent, it reads the host's own files. */
function getent(database: 'passwd' | 'group', keys: ReadonlySet<string>): Promise<string[][]> {
  const options = { timeout: 10_000, maxBuffer: 16 * 2 ** 20 };
  return new Promise((resolve) => {
    execFile('getent', [database, ...keys], options, (error, stdout) => {
      const isAnswer = error === null || error.code === 2;
      const lines = isAnswer ? stdout.split('\n') : linesOf(`/etc/${database}`);
      const fields = lines.map((line) => line.split(':'));
      resolve(fields.filter(([name = '', , id = '']) => keys.has(name) || keys.has(id)));
    });
  });
}

/** The name of this process's account, or its number where it has no name, as in a container that is given any number. */
export function ownAccount(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.()}`;
  }
}

export function listProcesses(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** A file about a process, in latin1; empty where the process has ended, or belongs to another account and hides it. */
export function readProcess(pid: number, file: 'environ' | 'status' | 'stat' | 'cmdline'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}

/**
 * Real, effective, saved and file system UID, read from `status`: the owner of the files in /proc can be root
 * instead. Empty for a process that has ended, also for a zombie.
 */
export function uidsOf(pid: number): number[] {
  const text = readProcess(pid, 'status');
  if (/^State:\s+[ZX]/m.test(text)) return [];
  return /^Uid:\s+(.*)$/m.exec(text)?.[1]?.split(/\s+/).map(Number) ?? [];
}
