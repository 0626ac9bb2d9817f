/**
 * What a gateway process may do where the service is root: nothing but to be an account of its own. setpriv(1) of util-linux
 * drops the rest, before the program runs. Where the service is not root, the process is what the service is.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DomainError } from '../domain/error.ts';

export interface Account {
  name: string;
  uid: number;
  gid: number;
}

/** Whose processes they are when the configuration does not say, where there is such an account. */
const usualAccount = 'andromeda-gateway';

/** The account for gateway processes; undefined: the service's own. Throws `invalid_request` when `name` is not one. */
export function findAccount(name: string | undefined): Account | undefined {
  const wanted = name ?? usualAccount;
  if (process.getuid?.() !== 0) {
    if (name === undefined) return undefined;
    throw new DomainError(
      'invalid_request',
      `gateway.account is ${name}, and the service is not root: it cannot start processes of other accounts. Leave it out.`,
    );
  }
  const lines = existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8').split('\n') : [];
  const fields = lines.map((line) => line.split(':')).find(([first]) => first === wanted);
  if (fields) return { name: wanted, uid: Number(fields[2]), gid: Number(fields[3]) };
  if (name === undefined) return undefined;
  throw new DomainError('invalid_request', `gateway.account is ${name}, and this host has no such account.`);
}

/** A command in front of which all rights are dropped, but for a port below 1024 where one is to be bound. */
export function withoutPrivileges(
  command: readonly string[],
  account: Account | undefined,
  port: number,
): readonly string[] {
  const setpriv = (process.env['PATH'] ?? '/usr/bin:/bin')
    .split(':')
    .map((directory) => join(directory, 'setpriv'))
    .find((path) => existsSync(path));
  if (process.getuid?.() !== 0 || setpriv === undefined) return command;
  const low = port > 0 && port < 1024 ? ',+net_bind_service' : '';
  const rights = ['--no-new-privs', `--bounding-set=-all${low}`, `--inh-caps=-all${low}`];
  if (low !== '') rights.push('--ambient-caps=+net_bind_service');
  if (account) rights.push(`--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups');
  return [setpriv, ...rights, '--', ...command];
}
