/** What SCIM is given by the service. */
import type { Logger } from '../../lib/log.ts';
import type { TrustedProxies } from '../../lib/source-address.ts';
import type { Store } from '../../store/engine/index.ts';

export interface ScimOptions {
  store: Store;
  /** What callers outside call the Business API by. */
  url: string;
  proxies: TrustedProxies;
  log: Logger;
  /** The clock of the service, in milliseconds since 1970. */
  now(): number;
}
