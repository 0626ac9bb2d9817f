/** SSH sessions through the gateway, open or just ended, and the names under which people log in. */
import { isUuid } from '../id.ts';

export interface SshSession {
  id: string;
  loginName: string;
  clusterId: string;
  userId: string;
  username: string;
  keyId: string;
  fingerprint: string;
  remoteAddress: string;
  loginNode: string;
  /** The session's job, as `squeue` prints it, and node; absent on the login node, or until confirmed. */
  job?: string;
  jobNode?: string;
  openedAt: string;
  channels: number;
  bytesUp: number;
  bytesDown: number;
}

export interface SessionUses {
  commands: readonly string[];
  commandCount: number;
  /** Forwarded destinations, "host:port", each once. */
  forwards: readonly string[];
  forwardCount: number;
  shells: number;
  files: number;
}

export interface PastSession
  extends Pick<
    SshSession,
    | 'id'
    | 'clusterId'
    | 'userId'
    | 'username'
    | 'keyId'
    | 'fingerprint'
    | 'remoteAddress'
    | 'loginNode'
    | 'job'
    | 'jobNode'
    | 'openedAt'
  > {
  /** The audit trail's entry number of the session's end. */
  seq: number;
  closedAt: string;
  reason: string;
  /** Undefined where unknown, as after a crash of the service. */
  known: (Pick<SshSession, 'bytesUp' | 'bytesDown'> & SessionUses) | undefined;
}

export interface JobTarget {
  /** As `squeue` prints it: `4711`, in an array `4711_3`, in a heterogeneous job `4711+1`. Absent: the person's newest job. */
  id?: string;
  /** One of the job's nodes. Absent: the first. */
  node?: string;
}

const longestNode = 64;
/** The length of the longest valid login name: `<cluster-id>.<username>` and `+4294967295_4294967295.<node>`. */
export const longestLoginName = 36 + 1 + 32 + 23 + longestNode;

const jobSuffix = /^(?:job|(\d{1,10}(?:[_+]\d{1,10})?)(?:\.([A-Za-z0-9][A-Za-z0-9._-]*))?)$/;

/**
 * Parses `<cluster-id>.<username>`, with the job where `+job`, `+<job ID>` or `+<job ID>.<node>` follows; undefined
 * for any other form.
 */
export function parseLoginName(
  loginName: string,
): { clusterId: string; username: string; job?: JobTarget } | undefined {
  if (loginName.length > longestLoginName) return undefined;
  const clusterId = loginName.slice(0, 36);
  const [username = '', suffix] = splitOnce(loginName.slice(37));
  if (!isUuid(clusterId) || loginName.charAt(36) !== '.' || !/^[a-z][a-z0-9_-]{0,31}$/.test(username)) {
    return undefined;
  }
  const login = { clusterId: clusterId.toLowerCase(), username };
  if (suffix === undefined) return login;
  const [isJob, id, node] = jobSuffix.exec(suffix) ?? [];
  if (isJob === undefined || (node?.length ?? 0) > longestNode) return undefined;
  return { ...login, job: { ...(id !== undefined && { id }), ...(node !== undefined && { node }) } };
}

/** Splits at the first plus sign: a user name contains none, a job ID may. */
function splitOnce(text: string): [string, string?] {
  const at = text.indexOf('+');
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
