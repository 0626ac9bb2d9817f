/** The gateway as the rest of the service knows it, and what it is given. */
import type { SshSession } from '../../domain/access/ssh-session.ts';
import type { Logger } from '../../lib/log.ts';
import type { Authorize, SessionFilter } from '../ssh/decision.ts';
import type { GatewayEvent } from '../ssh/events.ts';
import type { GatewayKeys } from '../ssh/index.ts';
import type { Settings } from './messages.ts';

export interface GatewaysOptions {
  dataDir: string;
  /** How many; 0: none, the gateway is in this process. */
  processes: number;
  /** The account that they run as, where the service is root. */
  account?: string | undefined;
  settings: Settings;
  authorize: Authorize;
  /** Resolves when the record is written, once, and never fails. `mayBeWritten`: by the service before this one. */
  record(event: GatewayEvent, mayBeWritten?: boolean): Promise<void>;
  log: Logger;
  /** The build of the program that processes are to run; this one's when left out. */
  build?: string | undefined;
}

/** A gateway process that stands still, or that a change has not reached yet. */
export interface Unreached {
  pid: number;
  since: number;
  /** That it has, as far as is known. */
  sessions: number;
}

export interface Gateways {
  /** Sessions that processes from before still have, by ID. */
  readonly held: ReadonlySet<string>;
  /** Resolves when connections are accepted. Before, nothing is asked or recorded. Throws what listening throws. */
  start(): Promise<void>;
  /** Why no connections are accepted, as far as is known; undefined while they are. */
  readonly fault: string | undefined;
  /** Processes that stand still or have not done what a `recheck` asked of them: who was revoked may still have sessions there. */
  readonly unreached: readonly Unreached[];
  useKeys(keys: GatewayKeys): void;
  /** Asks `authorize` again for the sessions that match, and closes those it no longer allows; at most a second passes. */
  recheck(filter?: SessionFilter): Promise<void>;
  /** Closes sessions for another reason, as when their login node restarts. Returns how many. */
  close(filter: SessionFilter, reason: string, text: string): number;
  sessions(): Promise<readonly SshSession[]>;
  count(): number;
  stop(): Promise<void>;
  /** Leaves the processes to the service that starts next: all, or those that it found. In this process it stops. */
  leave(which: 'all' | 'found'): Promise<void>;
  endLeft(): Promise<void>;
}
