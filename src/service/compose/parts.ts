/** What the parts of the service are called where one is handed to another. Each takes only those that it uses. */
import type { RequestListener } from 'node:http';
import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import type { Gateways } from '../../gateway/process/gateways.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { TrustedProxies } from '../../lib/source-address.ts';
import type { Store } from '../../store/engine/index.ts';
import type { SyncLoop } from '../../sync/index.ts';
import type { Audit } from '../audit/index.ts';
import type { Acme } from '../certificates/index.ts';
import type { Config } from '../config/index.ts';
import type { Downloads } from '../downloads/index.ts';
import type { LoginNodeKeys } from './login-node-keys.ts';
import type { AllGateways } from './peers/gateways.ts';
import type { Peers } from './peers/peers.ts';
import type { ServiceKeys } from './service-keys.ts';

export interface Parts extends Clock {
  config: Config;
  keys: ServiceKeys;
  loginNodeKeys: LoginNodeKeys;
  store: Store;
  peers: Peers;
  proxies: TrustedProxies;
  issuer: TokenIssuer;
  /** This server's own. */
  gateway: Gateways;
  gateways: AllGateways;
  audit: Audit;
  acme: Acme | undefined;
  fronts: { readonly isStopping: boolean };
  log: Logger;
  /** The sync loop while this server leads, and what the leader announces of its own. */
  sync: { loop?: Pick<SyncLoop, 'passesOf'>; announced: Pick<SyncLoop, 'passesOf'> };
  downloads: Downloads;
}

/** What the rest needs to know of the issuer. */
export interface TokenIssuer {
  url: string;
  keys: JWTVerifyGetKey;
  /** Has the embedded one use the keys that hold now. */
  refreshKeys?(): void;
  userinfo(token: string): Promise<Record<string, unknown>>;
  offersOffline(): Promise<boolean>;
  /** The `typ` in the header of an access token; undefined where issuers differ. */
  tokenType: string | undefined;
  scopes: readonly string[] | undefined;
  /** Whether a new password has ended a sign-in. Undefined where another issuer knows passwords. */
  isSignInOver: ((userId: string, claims: JWTPayload) => Promise<boolean>) | undefined;
  /** The link with which a person sets a password; undefined where another issuer knows passwords. */
  passwordLink: ((userId: string, command: string) => { token: string; url: string }) | undefined;
  /** The client that the web console is; undefined where there is no console. */
  console: { clientId: string; secret: string } | undefined;
  /** Its own pages and endpoints; undefined for an external issuer. */
  handle: RequestListener | undefined;
  /** Loads ahead what the first sign-in needs. */
  warm(): Promise<void>;
}
