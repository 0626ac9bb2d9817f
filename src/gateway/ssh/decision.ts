/** What a login rests on, as data: the composition root decides, the relay only obeys. And which sessions are meant by a filter. */
import type { LoginNode } from '../../domain/access/decision.ts';
import type { JobTarget } from '../../domain/access/ssh-session.ts';

export interface Route {
  clusterId: string;
  userId: string;
  username: string;
  keyId: string;
  shell: string;
  loginNode: LoginNode;
  /** The job of the person that the session runs in; left out: it runs on the login node. */
  job?: JobTarget;
  /** In how many ms the session ends for want of a sign-in, and what to do about it; left out: it does not. */
  lapse?: { leftMs: number; text: string };
}

/** Whose key was refused, and where: for the records. */
export type Subject = Pick<Route, 'clusterId' | 'userId' | 'keyId'>;

export type Decision =
  | { allowed: true; route: Route }
  /**
   * `disclose`: the key is this person's own, so the message is sent to the client that proved it. `untilSignIn`: a sign-in of
   * theirs, which the login may wait for, is all that is missing.
   */
  | {
      allowed: false;
      reason: string;
      message: string;
      disclose: boolean;
      subject?: Subject;
      untilSignIn?: boolean;
    };

export interface Attempt {
  loginName: string;
  /** OpenSSH format without comment: "ssh-ed25519 AAAA…". */
  publicKey: string;
  /** "SHA256:…", as ssh-keygen prints it. */
  fingerprint: string;
  remoteAddress: string;
}

/**
 * Decides about an attempt from what is stored now. It is asked again for as long as the session lives, with the login
 * node that the session is on. `gone`: the connection ended, and the answer is of no use.
 */
export type Authorize = (
  attempt: Attempt,
  openOn?: Pick<LoginNode, 'host' | 'port'>,
  gone?: AbortSignal,
) => Promise<Decision>;

/** Where a session runs and as whom; a change of it ends the session, a change of shell does not. */
export function isSameLogin(a: Route, b: Route): boolean {
  return (
    a.clusterId === b.clusterId &&
    a.userId === b.userId &&
    a.username === b.username &&
    a.keyId === b.keyId &&
    a.loginNode.host === b.loginNode.host &&
    a.loginNode.port === b.loginNode.port &&
    a.loginNode.hostKey === b.loginNode.hostKey
  );
}

/** Sessions that match every field given; all of them when none is. */
export interface SessionFilter {
  id?: string;
  clusterId?: string;
  userId?: string;
  keyId?: string;
  /** "host:port" */
  loginNode?: string;
}

const filterFields = ['id', 'clusterId', 'userId', 'keyId', 'loginNode'] satisfies (keyof SessionFilter)[];

/** Whether this is a filter that names nothing unknown here, without which it would match more sessions than are meant. */
export function isFilter(value: unknown): value is SessionFilter {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const isKnown = (name: string) => filterFields.some((one) => one === name);
  return Object.entries(value).every(([name, one]) => isKnown(name) && typeof one === 'string');
}

/** What of a session a filter looks at. A login that is no session yet has no ID, and could get any. */
export type Filtered = Pick<Route, 'clusterId' | 'userId' | 'keyId'> & { id?: string; loginNode: string };

export function filteredOf({ clusterId, userId, keyId, loginNode }: Route): Filtered {
  return { clusterId, userId, keyId, loginNode: `${loginNode.host}:${loginNode.port}` };
}

export function matches(session: Filtered, filter: SessionFilter): boolean {
  return filterFields.every((name) => {
    const [wanted, known] = [filter[name], session[name]];
    return wanted === undefined || known === undefined || wanted === known;
  });
}
