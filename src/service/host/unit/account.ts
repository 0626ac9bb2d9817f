/** The account that an installation runs as, for root's commands. */
import { readFileSync, statSync } from 'node:fs';

/**
 * Where root runs a command about an installation of another account, goes on as that account for good: what that one may
 * read is the question, and no file is made that it could not use.
 */
export function becomeOwnerOf(dataDir: string): void {
  const owner = statSync(dataDir, { throwIfNoEntry: false });
  if (process.getuid?.() !== 0 || !owner || owner.uid === 0) return;
  process.setgroups?.(groupsOf(nameOf(owner.uid)));
  process.setgid?.(owner.gid);
  process.setuid?.(owner.uid);
}

export function accountName(uid: number): string {
  return nameOf(uid) ?? `user ${uid}`;
}

function nameOf(uid: number): string | undefined {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  return lines.map((line) => line.split(':')).find(([, , id]) => id === String(uid))?.[0];
}

function groupsOf(name: string | undefined): number[] {
  const groups = readFileSync('/etc/group', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const own = groups.filter(
    ([, , , members = '']) => name !== undefined && members.split(',').includes(name),
  );
  return own.map(([, , id]) => Number(id));
}
