/** The POSIX login name of a person on an organization's clusters (contract, "Membership"). */

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
