/**
 * Privileges of a gateway process where the service is root: none but those of an account of its own. setpriv(1) of
 * util-linux drops the rest before the program starts. Where the service is not root, systemd starts the process as
 * an account of its own (`startByLauncher`); without systemd, the process has the service's rights.
 */
import { createHash } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { findHostEntry, listHostIds, listProcesses, uidsOf } from '../../lib/host-ids.ts';

export interface Account {
  name: string;
  uid: number;
  gid: number;
}

/** The account of gateway processes when the configuration names none, where the host has such an account. */
export const usualAccount = 'andromeda-gateway';
/** UIDs that neither distributions nor systemd assign; user namespaces of 65,536 UIDs have them too. */
const spareNumbers = { from: 60_578, to: 61_183 };

/**
 * The account for gateway processes: where the service is root, one that is not, if need be a UID without a name.
 * Undefined where the service is not root: processes run as the service's own. Throws `invalid_request` when no
 * account is available. `own`: PIDs of the gateway processes from before this start.
 */
export function findAccount(
  name: string | undefined,
  dataDir: string,
  own: readonly number[],
): Account | undefined {
  if (process.getuid?.() !== 0) {
    if (name === undefined) return undefined;
    throw refusal(
      `gateway.account is ${name}, and the service is not root: it cannot start processes of other accounts. Leave it out.`,
    );
  }
  const account =
    accountOf(name ?? usualAccount) ?? (name === undefined ? spareAccount(dataDir, own) : undefined);
  if (!account) throw refusal(`gateway.account is ${name}, and this host has no such account.`);
  if (!(account.uid > 0 && account.gid > 0)) {
    throw refusal(`gateway.account is ${account.name}, which is root or in its group. Give another account.`);
  }
  if (findSetpriv() === undefined) {
    throw refusal(
      'The service is root, and there is no setpriv here, with which the SSH gateway gives up root. Install util-linux.',
    );
  }
  return account;
}

function accountOf(name: string): Account | undefined {
  const fields = findHostEntry('passwd', name);
  return fields && { name, uid: Number(fields[2]), gid: Number(fields[3]) };
}

/**
 * A UID that no process of another installation has: such a process could pose as this service's gateway. The UID is
 * derived from the data directory's path; processes from before this start keep theirs.
 */
function spareAccount(dataDir: string, own: readonly number[]): Account {
  const { from, to } = spareNumbers;
  const others = new Set(realUidsOf(listProcesses().filter((pid) => !own.includes(pid))));
  const named = new Set(listHostIds());
  const isSpare = (uid: number) => uid >= from && uid <= to;
  const mayKeep = (uid: number) => !named.has(uid) && (isSpare(uid) || !others.has(uid));
  const kept = realUidsOf(own).find((uid) => uid > 0 && mayKeep(uid));
  if (kept !== undefined) return numbered(kept);
  const taken = others.union(named);
  const count = to - from + 1;
  const first = createHash('sha256').update(dataDir).digest().readUInt32BE() % count;
  for (let step = 0; step < count; step += 1) {
    const uid = from + ((first + step) % count);
    if (!taken.has(uid)) return numbered(uid);
  }
  throw refusal(`The SSH gateway needs an account of its own: make ${usualAccount}, or set gateway.account.`);
}

const numbered = (uid: number): Account => ({ name: `user ${uid}`, uid, gid: uid });

const realUidsOf = (pids: readonly number[]) => pids.flatMap((pid) => uidsOf(pid).slice(0, 1));

function findSetpriv(): string | undefined {
  return `${process.env['PATH']}:/usr/bin:/bin`
    .split(':')
    .filter(isAbsolute)
    .map((directory) => join(directory, 'setpriv'))
    .find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A command with a prefix that drops all privileges, except for binding a port below 1024 where `port` is one. */
export function withoutPrivileges(
  command: readonly string[],
  account: Account | undefined,
  port: number,
): readonly string[] {
  if (!account) return command;
  const low = port > 0 && port < 1024 ? ',+net_bind_service' : '';
  const rights = ['--no-new-privs', `--bounding-set=-all${low}`, `--inh-caps=-all${low}`];
  if (low !== '') rights.push('--ambient-caps=+net_bind_service');
  rights.push(`--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups');
  return [findSetpriv() ?? 'setpriv', ...rights, '--', ...command];
}

function refusal(message: string): DomainError {
  return new DomainError('invalid_request', message);
}
