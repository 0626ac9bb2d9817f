/** The decision about a login, as data: the composition root decides, the relay only obeys. Also filters of sessions. */
import type { LoginNode } from '../../domain/access/decision.ts';
import type { JobTarget } from '../../domain/access/ssh-session.ts';

export interface Route {
  clusterId: string;
  userId: string;
  username: string;
  keyId: string;
  shell: string;
  loginNode: LoginNode;
  /** The person's job that the session runs in; left out: it runs on the login node. */
  job?: JobTarget;
  /** Time in ms until the session ends for want of a sign-in, and how to prevent it; left out: it does not end. */
  lapse?: { leftMs: number; text: string };
}

/** The owner and cluster of a refused key, for the records. */
export type Subject = Pick<Route, 'clusterId' | 'userId' | 'keyId'>;

export type Decision =
  | { allowed: true; route: Route }
  /**
   * `disclose`: the key is this person's own, so the message is sent to the client that proved it. `untilSignIn`:
   * only a sign-in of the person is missing, which the login may wait for.
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
 * Decides about an attempt from the stored state. It is asked again as long as the session lives, then with the login
 * node of the session. `gone`: aborts when the connection has ended, and the answer is of no use.
 */
export type Authorize = (
  attempt: Attempt,
  openOn?: Pick<LoginNode, 'host' | 'port'>,
  gone?: AbortSignal,
) => Promise<Decision>;

/** Compares node, account and key: a change of these ends the session, a change of shell does not. */
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

/** Matches sessions by every field that is set; all sessions when none is. */
export interface SessionFilter {
  id?: string;
  clusterId?: string;
  userId?: string;
  keyId?: string;
  /** "host:port" */
  loginNode?: string;
}

const filterFields = ['id', 'clusterId', 'userId', 'keyId', 'loginNode'] satisfies (keyof SessionFilter)[];

/** True for a filter without unknown fields: ignoring one would match more sessions than are meant. */
export function isFilter(value: unknown): value is SessionFilter {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const isKnown = (name: string) => filterFields.some((one) => one === name);
  return Object.entries(value).every(([name, one]) => isKnown(name) && typeof one === 'string');
}

/** The fields of a session that a filter compares. A login that is no session yet has no ID, and could get any. */
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
