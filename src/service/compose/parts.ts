/** The names of the service's parts where they are passed on. Each part takes only those that it uses. */
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
  /** The gateway of this server. */
  gateway: Gateways;
  gateways: AllGateways;
  audit: Audit;
  acme: Acme | undefined;
  fronts: { readonly isStopping: boolean };
  log: Logger;
  /** The sync loop while this server leads, and the passes that the leader announces. */
  sync: { loop?: Pick<SyncLoop, 'passesOf'>; announced: Pick<SyncLoop, 'passesOf'> };
  downloads: Downloads;
}

/** The issuer's interface towards the other parts. */
export interface TokenIssuer {
  url: string;
  keys: JWTVerifyGetKey;
  /** Makes the embedded issuer use the keys that are valid now. */
  refreshKeys?(): void;
  userinfo(token: string, subject: string): Promise<Record<string, unknown>>;
  offersOffline(): Promise<boolean>;
  /** The `typ` in the header of an access token; undefined where issuers differ. */
  tokenType: string | undefined;
  scopes: readonly string[] | undefined;
  /** True if a new password has ended a sign-in. Undefined where an external issuer has the passwords. */
  isSignInOver: ((userId: string, claims: JWTPayload) => Promise<boolean>) | undefined;
  /** The link with which a person sets a password; undefined where an external issuer has the passwords. */
  passwordLink: ((userId: string, command: string) => { token: string; url: string }) | undefined;
  /** The web console's client credentials; undefined where there is no console. */
  console: { clientId: string; secret: string } | undefined;
  /** The embedded issuer's pages and endpoints; undefined for an external issuer. */
  handle: RequestListener | undefined;
  /** Loads ahead what the first sign-in needs. */
  warm(): Promise<void>;
}
