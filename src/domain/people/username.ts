/** The POSIX login name of a person on an organization's clusters (contract, "Membership"), and their login shell. */
import { invalidRequest } from '../error.ts';

const usernamePattern = /^[a-z][a-z0-9_-]{0,31}$/;

/**
 * Names of accounts that a login node or a cluster has for itself. A person with such a name would collide with, or
 * be taken for, the machine's own.
 */
const reserved: ReadonlySet<string> = new Set(
  (
    'root daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc gnats nobody sshd slurm munge ' +
    'mysql postgres messagebus systemd-network systemd-resolve systemd-timesync polkitd adm wheel sudo shadow tty'
  ).split(' '),
);

/** Whether `name` may be a person's login name: 1 to 32 characters, a lowercase letter first. */
export function isUsername(name: string): boolean {
  return usernamePattern.test(name) && !reserved.has(name);
}

/** The home directory that goes with a login name. */
export function homeOf(username: string): string {
  return `/home/${username}`;
}

/** Login names made from an email address, best first, without end. */
export function* usernamesFromEmail(email: string): Generator<string> {
  const local = (email.split('@')[0] ?? '').toLowerCase().replace(/[^a-z0-9_-]/g, '');
  const stem = (local.replace(/^[^a-z]+/, '') || 'user').slice(0, 28);
  for (let suffix = 0; ; suffix++) {
    const name = suffix === 0 ? stem : `${stem}${suffix + 1}`;
    if (isUsername(name)) yield name;
  }
}

const longestShell = 255;

/** The login shell as a person asks for it (contract, `PUT /me/login-preferences`). Throws `invalid_request` when it cannot be one. */
export function parseLoginShell(shell: string): string {
  if (shell === '') throw invalidRequest('The shell is empty.');
  if (!shell.startsWith('/')) throw invalidRequest('The shell must be an absolute path, such as /bin/bash.');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f]/.test(shell))
    throw invalidRequest('The shell must not contain control characters.');
  // It becomes a field of /etc/passwd on the clusters, where a colon ends it.
  if (shell.includes(':')) throw invalidRequest('The shell must not contain a colon.');
  if (shell.length > longestShell)
    throw invalidRequest(`The shell is longer than ${longestShell} characters.`);
  const segments = shell.split('/').slice(1);
  if (segments.some((segment) => ['', '.', '..'].includes(segment))) {
    throw invalidRequest('The shell must be the plain path of a program, such as /bin/bash.');
  }
  if (shell === '/usr/sbin/nologin') throw invalidRequest('/usr/sbin/nologin would lock you out.');
  return shell;
}
