/** The TLS of the listeners: one certificate for all, replaced while they listen. */
import type { Server as HttpsServer } from 'node:https';
import type { LiveTls } from '../../api/http/listen.ts';

export interface AcmeTls extends LiveTls {
  readonly hasCertificate: boolean;
  /** Gives the listeners another certificate, for connections from now on. */
  use(pem: Buffer): void;
}

/** `pem`: the chain and its key, once there is one. */
export function createTls(pem: Buffer | undefined): AcmeTls {
  let current = pem;
  const servers = new Set<HttpsServer>();
  function give(server: HttpsServer): void {
    if (current) server.setSecureContext({ cert: current, key: current, minVersion: 'TLSv1.2' });
  }
  return {
    get hasCertificate() {
      return current !== undefined;
    },
    attach(server) {
      servers.add(server);
      give(server);
      return () => void servers.delete(server);
    },
    use(next) {
      current = next;
      for (const server of servers) give(server);
    },
  };
}
