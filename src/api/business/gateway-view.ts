/** What operators see of the SSH gateway; app makes it. */
import type { SshSession } from '../../domain/access/ssh-session.ts';

export interface GatewayView {
  hostname: string;
  port: number;
  /** What it shows to people, `ssh-ed25519 AAAA…`: the one in use, then those that hold besides. */
  hostKeys: readonly string[];
  /** What it shows to login nodes, likewise. */
  publicKeys: readonly string[];
  /** Of all servers. */
  sessions(): Promise<readonly SshSession[]>;
  /** Ends a session of this server with a word to the person; whether there was one. */
  close(sessionId: string, text: string): boolean;
}
