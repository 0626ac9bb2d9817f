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
  /** The job that it runs in, as `squeue` prints it, and on which of its nodes; left out where it runs on the login node, or none is confirmed. */
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
  /** "host:port", each once. */
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
  /** The number of the entry of its end in the audit trail. */
  seq: number;
  closedAt: string;
  reason: string;
  /** Undefined where unknown, as after a crash of the service. */
  known: (Pick<SshSession, 'bytesUp' | 'bytesDown'> & SessionUses) | undefined;
}

export interface JobTarget {
  /** As `squeue` prints it: `4711`, of an array `4711_3`, of a heterogeneous job `4711+1`. Left out: the person's youngest. */
  id?: string;
  /** One of the job's nodes. Left out: its first. */
  node?: string;
}

const longestNode = 64;
/** `+4294967295_4294967295.<node>` after `<cluster-id>.<username>`: no name has more characters. */
export const longestLoginName = 36 + 1 + 32 + 23 + longestNode;

const jobSuffix = /^(?:job|(\d{1,10}(?:[_+]\d{1,10})?)(?:\.([A-Za-z0-9][A-Za-z0-9._-]*))?)$/;

/**
 * `<cluster-id>.<username>` taken apart, with the job where `+job`, `+<job ID>` or `+<job ID>.<node>` follows; undefined when it
 * is not of that form.
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

/** A user name holds no plus sign, a job ID may. */
function splitOnce(text: string): [string, string?] {
  const at = text.indexOf('+');
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
