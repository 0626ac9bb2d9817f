/** SSH sessions through the gateway, open or just ended. */

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
  /** The job that it runs in, as `squeue` prints it, and on which of its nodes; left out where it runs on the login node. */
  job?: string;
  jobNode?: string;
  openedAt: string;
  channels: number;
  bytesUp: number;
  bytesDown: number;
}

/** What a session was used for: the first of each kind as text, and how many there were. */
export interface SessionUses {
  commands: readonly string[];
  commandCount: number;
  /** "host:port", each once. */
  forwards: readonly string[];
  forwardCount: number;
  shells: number;
  files: number;
}

/** A session that is over, as it is kept. */
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
