/** What operators see of the SSH gateway; app.ts makes it. */

export interface GatewayView {
  hostname: string;
  port: number;
  /** What it shows to people: `ssh-ed25519 AAAA…`. */
  hostKey: string;
  /** What it shows to login nodes. */
  publicKey: string;
  sessions(): readonly OpenSession[];
  /** Ends a session with a word to the person; whether there was one. */
  close(sessionId: string, text: string): boolean;
}

export interface OpenSession {
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
