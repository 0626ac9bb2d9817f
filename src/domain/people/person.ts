/** People: everybody with an account. The ID of a person is `userId` in all of the code, and `user_…` on the wire. */
import { invalidRequest, invalidState } from '../error.ts';

export interface Person {
  id: string;
  /** `system`: the installation itself, which cannot sign in and owns what lab files create. */
  kind: 'person' | 'system';
  /** In lower case. */
  email: string;
  displayName: string;
  /** As the issuer said it at the first sign-in. */
  preferredUsername: string | null;
  loginShell: string;
  lifecycleState: 'active' | 'deactivated';
  staffKeys: StaffKey[];
  /** When what names them was replaced; null: it was not. RFC 3339. */
  erasedAt: string | null;
  /** When they last signed in, to the hour; null before the first time. RFC 3339. */
  signedInAt: string | null;
  /** Until when their access does not lapse without a sign-in. */
  signInExemptUntil: string | null;
  createdAt: string;
  updatedAt: string;
}

const longest = 254;

/** Whether `text` can be an address: something without spaces and invisible characters on both sides of one @. */
export function isEmail(text: string): boolean {
  return text.length <= longest && /^[^@\s\p{C}]+@[^@\s\p{C}]+$/u.test(text);
}

/**
 * An address, or a domain, as it is kept and compared: the letters A to Z are small. Other letters stay as they are, since
 * some that look alike become ASCII when folded (the Kelvin sign becomes k), and then two people are one.
 */
export function foldEmail(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/**
 * The addresses in a text, as people paste them: of a spreadsheet, of a mail's header, one a line. Names around them are passed
 * over. `unread`: what looks like an address, and is none.
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
  if (/[\p{C}\p{Zl}\p{Zp}]/u.test(shell))
    throw invalidRequest('The shell must not contain control or invisible characters.');
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

const staffCatalog = [
  { key: 'staff.read', description: 'See everything in the installation', implies: [] },
  { key: 'staff.audit', description: 'Read and verify the audit trail', implies: [] },
  { key: 'staff.operate', description: 'Change everything', implies: ['staff.read', 'staff.audit'] },
] as const;

export type StaffKey = (typeof staffCatalog)[number]['key'];

/** Whether someone with these keys holds `key`, inclusions followed. */
export function holdsStaffKey(held: readonly string[], key: StaffKey): boolean {
  return staffCatalog.some(
    (known) =>
      held.includes(known.key) && (known.key === key || (known.implies as readonly string[]).includes(key)),
  );
}

/** Throws `invalid_state` when a change takes the last person away who can operate the installation. */
export function checkOperators({ before, after }: { before: boolean; after: boolean }): void {
  if (!before || after) return;
  throw invalidState('This is the last person with staff.operate. Give it to another first.');
}
