/** People: everyone with an account. A person's ID is `userId` in all of the code, and `user_…` on the wire. */
import { invalidRequest, invalidState } from '../error.ts';

export interface Person {
  id: string;
  /** `system`: the installation itself, which cannot sign in and owns what lab files create. */
  kind: 'person' | 'system';
  /** In lower case. */
  email: string;
  displayName: string;
  /** The issuer's claim at the first sign-in. */
  preferredUsername: string | null;
  loginShell: string;
  lifecycleState: 'active' | 'deactivated';
  staffKeys: StaffKey[];
  /** When the person's names were replaced; null: not erased. RFC 3339. */
  erasedAt: string | null;
  /** The last sign-in, to the hour; null before the first. RFC 3339. */
  signedInAt: string | null;
  /** Until this time, access does not lapse without a sign-in. */
  signInExemptUntil: string | null;
  createdAt: string;
  updatedAt: string;
}

const longest = 254;

/** True for a possible address: text without spaces and invisible characters on both sides of one @. */
export function isEmail(text: string): boolean {
  return text.length <= longest && /^[^@\s\p{C}]+@[^@\s\p{C}]+$/u.test(text);
}

/**
 * An address or domain as it is stored and compared: A to Z in lower case. Other letters stay, since folding turns
 * some lookalikes into ASCII (the Kelvin sign becomes k), which would make one account of two people.
 */
export function foldEmail(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/**
 * The addresses in pasted text: a spreadsheet, a mail header, one per line. Names around them are skipped. `unread`:
 * texts that look like an address and are none.
 */
export function readEmails(text: string): { found: string[]; unread: string[] } {
  const all = text
    .split(/[\s,;<>()"']+/)
    .filter((one) => one.includes('@'))
    .map((one) => one.replace(/^mailto:/i, '').replace(/[.:]+$/, ''));
  const found = new Map(all.filter(isEmail).map((one) => [foldEmail(one), one]));
  return { found: [...found.values()], unread: [...new Set(all.filter((one) => !isEmail(one)))] };
}

const usernamePattern = /^[a-z][a-z0-9_-]{0,31}$/;

/** Groups whose members may become root on a host. */
export const privilegedGroups = ['root', 'sudo', 'wheel', 'admin', 'docker', 'lxd', 'disk', 'shadow'];

/**
 * Accounts and groups that hosts have for themselves, now or with a package later. A person or team of such a name would be taken for
 * them; members of some of these groups become root or read other people's data, and a person's own group has their name.
 */
const reserved: ReadonlySet<string> = new Set([
  ...privilegedGroups,
  ...(
    'daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc gnats nobody sshd slurm munge ' +
    'mysql postgres messagebus systemd-network systemd-resolve systemd-timesync polkitd adm tty ' +
    'podman incus incus-admin libvirt kvm kmem mem input video render staff users nogroup ssh ' +
    'ssl-cert systemd-journal crontab netdev plugdev microk8s'
  ).split(' '),
]);

/** What `isUsername` demands, for the end of a sentence. */
export const usernameRule =
  '1 to 32 characters, a lowercase letter first, then lowercase letters, digits, _ or -, and not an account or group that systems have for themselves';

/** Checks a login name: 1 to 32 characters, a lowercase letter first. */
export function isUsername(name: string): boolean {
  return usernamePattern.test(name) && !reserved.has(name);
}

export function homeOf(username: string): string {
  return `/home/${username}`;
}

/** Login names derived from an email address, best first, an endless sequence. */
export function* usernamesFromEmail(email: string): Generator<string> {
  const local = (email.split('@')[0] ?? '').toLowerCase().replace(/[^a-z0-9_-]/g, '');
  const stem = (local.replace(/^[^a-z]+/, '') || 'user').slice(0, 28);
  for (let suffix = 0; ; suffix++) {
    const name = suffix === 0 ? stem : `${stem}${suffix + 1}`;
    if (isUsername(name)) yield name;
  }
}

const longestShell = 255;

/** Validates the requested login shell (contract, `PUT /me/login-preferences`). Throws `invalid_request`. */
export function parseLoginShell(shell: string): string {
  if (shell === '') throw invalidRequest('The shell is empty.');
  if (!shell.startsWith('/')) throw invalidRequest('The shell must be an absolute path, such as /bin/bash.');
  if (/[\p{C}\p{Zl}\p{Zp}]/u.test(shell))
    throw invalidRequest('The shell must not contain control or invisible characters.');
  // The shell becomes a field of /etc/passwd on the clusters, where a colon ends it.
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

const staffCatalog = [
  { key: 'staff.read', description: 'See everything in the installation', implies: [] },
  { key: 'staff.audit', description: 'Read and verify the audit trail', implies: [] },
  { key: 'staff.operate', description: 'Change everything', implies: ['staff.read', 'staff.audit'] },
] as const;

export type StaffKey = (typeof staffCatalog)[number]['key'];

/** True if someone with these keys holds `key`, inclusions followed. */
export function holdsStaffKey(held: readonly string[], key: StaffKey): boolean {
  return staffCatalog.some(
    (known) =>
      held.includes(known.key) && (known.key === key || (known.implies as readonly string[]).includes(key)),
  );
}

/** Throws `invalid_state` if a change would leave the installation without an operator. */
export function checkOperators({ before, after }: { before: boolean; after: boolean }): void {
  if (!before || after) return;
  throw invalidState('This is the last person with staff.operate. Give it to another first.');
}
