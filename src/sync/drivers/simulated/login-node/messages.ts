/** The messages between the server's process and the login node's process. */
import type { EventLevel, EventName, LogEvents } from '../../../../lib/log.ts';

export interface Account {
  username: string;
  uid: number;
  gid: number;
  /** As the contract reports it, `/home/<username>`; where a session really lives, see `sandbox.ts`. */
  home: string;
  shell: string;
}

export interface Settings {
  dataDir: string;
  authorizedKeys: readonly string[];
  accounts: readonly Account[];
  /** `own` forces the built-in sftp server, which otherwise only stands in for a missing one. */
  sftp: 'system' | 'own';
  /** False: no mount namespace, even where one is possible. */
  namespace: boolean;
  /** The port on which the server's process takes connections; it hands them over. */
  port: number;
}

export type ToLoginNode =
  | { type: 'start'; settings: Settings }
  | { type: 'accounts'; id: number; accounts: readonly Account[] }
  /** Comes with the socket. */
  | { type: 'connection' }
  | { type: 'stop' };

export type FromLoginNode =
  | { type: 'ready' }
  | { type: 'failed'; message: string }
  | { type: 'accounts'; id: number; error: string | undefined }
  | { type: 'log'; level: EventLevel; event: EventName; fields: LogEvents[EventName] };
