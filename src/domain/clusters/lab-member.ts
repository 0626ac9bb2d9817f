/** The members of a lab file, and what is demanded of them. A page in a browser uses this as well. */
import { isPermissionKey, type PermissionKey, type Role } from '../access/permission.ts';
import { DomainError } from '../error.ts';
import { foldEmail, isUsername, usernameRule } from '../people/person.ts';

export interface LabMember {
  email: string;
  role: Role;
  username?: string;
  /** The numbers that the person's account has on hosts already. Absent: allocated; `gid`: as the uid. */
  uid?: number;
  gid?: number;
  /** Lines of public keys that the person has already. */
  keys?: string[];
  permissions?: PermissionKey[];
}

/** The path to a part of a lab file: keys and list indexes, outermost first. */
export type LabPath = readonly (string | number)[];

export class LabError extends DomainError {
  readonly at: LabPath;

  constructor(message: string, at: LabPath) {
    super('invalid_request', message);
    this.at = at;
  }
}

const mostNumber = 2 ** 31 - 1;

/** `fingerprints`: of the member's keys, which are valid. */
export type MemberCheck = (member: LabMember, fingerprints: readonly string[], at: LabPath) => void;

/**
 * A check of an organization's members, one after the other. It throws a `LabError` for a member's first fault, alone or with one
 * before. A member who is refused leaves no trace, so that the check can go on without that one.
 */
export function memberCheck(slug: string): MemberCheck {
  const [emails, usernames] = [new Set<string>(), new Set<string>()];
  const uids = new Map<number, string>();
  const holders = new Map<string, string>();
  return (member, fingerprints, at) => {
    const { email, username, uid } = member;
    for (const fingerprint of fingerprints) {
      const other = holders.get(fingerprint) ?? email;
      if (other !== email)
        throw new LabError(`${other} and ${email} have the same key ${fingerprint}.`, [...at, 'keys']);
    }
    const holder = uid === undefined ? undefined : uids.get(uid);
    if (holder) throw new LabError(`${holder} and ${email} have the same uid ${uid}.`, [...at, 'uid']);
    checkMember(member, at);
    checkNew(emails, foldEmail(email), `member of ${slug}`, at);
    if (username !== undefined) once(usernames, username, `username in ${slug}`, [...at, 'username']);
    emails.add(foldEmail(email));
    if (uid !== undefined) uids.set(uid, email);
    for (const fingerprint of fingerprints) holders.set(fingerprint, email);
  };
}

function checkMember({ email, username, uid, gid, permissions }: LabMember, at: LabPath) {
  for (const [name, number] of Object.entries({ uid, gid }))
    if (number !== undefined && !(number >= 1 && number <= mostNumber))
      throw new LabError(`The ${name} of ${email} is ${number}, not between 1 and ${mostNumber}.`, [
        ...at,
        name,
      ]);
  if (uid === undefined && gid !== undefined)
    throw new LabError(`${email} has a gid, and no uid.`, [...at, 'gid']);
  if (username !== undefined && !isUsername(username))
    throw new LabError(`"${username}" cannot be a username: ${usernameRule}.`, [...at, 'username']);
  const unknown = permissions?.find((permission) => !isPermissionKey(permission));
  if (unknown) throw new LabError(`${unknown} is not a permission.`, [...at, 'permissions']);
}

export function once(seen: Set<string>, value: string, what: string, at: LabPath): void {
  checkNew(seen, value, what, at);
  seen.add(value);
}

function checkNew(seen: ReadonlySet<string>, value: string, what: string, at: LabPath): void {
  if (seen.has(value)) throw new LabError(`The ${what} ${value} is there twice.`, at);
}
