/** The messages between the server's process and the login node's process. */
import type { ManifestAccount } from '../../../domain/access/manifest.ts';
import type { EventLevel, EventName, LogEvents } from '../../../lib/log.ts';
import type { Sandbox } from './sandbox.ts';

export type Account = Pick<ManifestAccount, 'username' | 'uid' | 'gid' | 'shell'>;

export interface StartSettings {
  /** The homes' directory, as the login node's process sees it. */
  homes: string;
  sandbox: Sandbox;
  hostKey: string;
  accounts: readonly Account[];
  /** The port on which the server's process listens; it hands its connections over. */
  port: number;
}

export type ToLoginNode =
  | { type: 'start'; settings: StartSettings }
  | { type: 'accounts'; accounts: readonly Account[] }
  /** Sent with the socket and the gateway's present keys. */
  | { type: 'connection'; authorizedKeys: readonly string[] }
  | { type: 'stop' };

export type FromLoginNode =
  | { type: 'ready' }
  | { type: 'failed'; message: string }
  | { type: 'accounts'; error: string | undefined }
  | { type: 'log'; level: EventLevel; event: EventName; fields: LogEvents[EventName] };
