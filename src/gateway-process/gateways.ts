/** The gateway as the rest of the service knows it, and what it is given. */
import type { SshSession } from '../domain/ssh-session.ts';
import type { Authorize } from '../gateway/decision.ts';
import type { GatewayEvent } from '../gateway/events.ts';
import type { SessionFilter } from '../gateway/index.ts';
import type { Logger } from '../lib/log.ts';
import type { Settings } from './messages.ts';

export interface GatewaysOptions {
  dataDir: string;
  /** How many; 0: none, the gateway is in this process. */
  processes: number;
  /** The account that they run as, where the service is root. */
  account?: string | undefined;
  settings: Settings;
  authorize: Authorize;
  /** Resolves when the record is written, and never fails. */
  record(event: GatewayEvent): Promise<void>;
  /** Whether a record was written before this service started. */
  isRecorded(event: GatewayEvent): Promise<boolean>;
  log: Logger;
  /** The build of the program that processes are to run; this one's when left out. */
  build?: string | undefined;
}

/** The gateway as the rest of the service knows it, wherever it runs. */
export interface Gateways {
  /** Sessions that processes from before still have, by ID. */
  readonly held: ReadonlySet<string>;
  /** Resolves when connections are accepted. Before, nothing is asked or recorded. Throws what listening throws. */
  start(): Promise<void>;
  /** Why nobody can connect, as far as is known; undefined while connections are accepted. */
  readonly fault: string | undefined;
  /** Asks `authorize` again for the sessions that match, and closes those it no longer allows; at most a second passes. */
  recheck(filter?: SessionFilter): Promise<void>;
  /** Closes sessions for another reason, as when their login node restarts. Returns how many. */
  close(filter: SessionFilter, reason: string, text: string): number;
  sessions(): Promise<readonly SshSession[]>;
  /** How many sessions are open. */
  count(): number;
  /** As `Gateway.stop`; no process is left. */
  stop(): Promise<void>;
  /** Leaves the processes to the service that starts next: all, or those that it found. In this process it stops. */
  leave(which: 'all' | 'found'): Promise<void>;
  /** Ends what was left, when no service follows. */
  endLeft(): Promise<void>;
}
