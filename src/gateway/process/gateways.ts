/** The gateway's interface towards the rest of the service, and its options. */
import type { SshSession } from '../../domain/access/ssh-session.ts';
import type { Logger } from '../../lib/log.ts';
import type { Authorize, SessionFilter } from '../ssh/decision.ts';
import type { GatewayEvent } from '../ssh/events.ts';
import type { GatewayKeys } from '../ssh/index.ts';
import type { Settings } from './messages.ts';

export interface GatewaysOptions {
  dataDir: string;
  /** Number of gateway processes; with 0 the gateway runs inside this process. */
  processes: number;
  /** The account that the processes run as, where the service is root. */
  account?: string | undefined;
  settings: Settings;
  authorize: Authorize;
  /** Resolves when the record is written, once, and never fails. `mayBeWritten`: the previous service may have written it already. */
  record(event: GatewayEvent, mayBeWritten?: boolean): Promise<void>;
  log: Logger;
  /** The build of the program that processes are to run; left out: this one's. */
  build?: string | undefined;
}

/** A gateway process that does not respond, or that has not applied a change yet. */
export interface Unreached {
  pid: number;
  since: number;
  /** Number of its sessions, as far as the service knows. */
  sessions: number;
}

export interface Gateways {
  /** IDs of the sessions that processes from before the start still have. */
  readonly held: ReadonlySet<string>;
  /** Resolves when connections are accepted; before that, nothing is asked or recorded. Throws the errors of listening. */
  start(): Promise<void>;
  /** The reason why no connections are accepted, as far as it is known; undefined while they are. */
  readonly fault: string | undefined;
  /** Processes that do not respond, or did not confirm a `recheck`: revoked people may still have sessions there. */
  readonly unreached: readonly Unreached[];
  useKeys(keys: GatewayKeys): void;
  /** Asks `authorize` again for the matching sessions, and closes those it no longer allows; takes at most a second. */
  recheck(filter?: SessionFilter): Promise<void>;
  /** Closes sessions for a reason other than access, such as a restart of their login node. Returns how many. */
  close(filter: SessionFilter, reason: string, text: string): number;
  sessions(): Promise<readonly SshSession[]>;
  count(): number;
  stop(): Promise<void>;
  /** Leaves gateway processes to the next service: all, or only those found at the start. A gateway in this process stops. */
  leave(which: 'all' | 'found'): Promise<void>;
  endLeft(): Promise<void>;
}
