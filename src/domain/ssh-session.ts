/** SSH sessions through the gateway, open or just ended. */

/** A session as an operator sees it. */
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
  openedAt: string;
  channels: number;
  bytesUp: number;
  bytesDown: number;
}
