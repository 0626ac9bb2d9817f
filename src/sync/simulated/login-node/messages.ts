/** The messages between the server's process and the login node's process. */
import type { ManifestAccount } from '../../../domain/access/manifest.ts';
import type { EventLevel, EventName, LogEvents } from '../../../lib/log.ts';
import type { Sandbox } from './sandbox.ts';

/** An account that a person can log in to. */
export type Account = Pick<ManifestAccount, 'username' | 'uid' | 'gid' | 'shell'>;

export interface Settings {
  /** Where the homes are, as the login node's process sees it. */
  homes: string;
  sandbox: Sandbox;
  hostKey: string;
  accounts: readonly Account[];
  /** The port on which the server's process takes connections; it hands them over. */
  port: number;
}

export type ToLoginNode =
  | { type: 'start'; settings: Settings }
  | { type: 'accounts'; accounts: readonly Account[] }
  /** Comes with the socket, and with the gateway's keys at the moment. */
  | { type: 'connection'; authorizedKeys: readonly string[] }
  | { type: 'stop' };

export type FromLoginNode =
  | { type: 'ready' }
  | { type: 'failed'; message: string }
  | { type: 'accounts'; error: string | undefined }
  | { type: 'log'; level: EventLevel; event: EventName; fields: LogEvents[EventName] };
