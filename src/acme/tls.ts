/**
 * The TLS of the listeners: one certificate for all, replaced while they listen, and the authority's question over TLS (RFC
 * 8737). While such a question is expected, the first message of each connection is looked at, and at no other time.
 */
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { createSecureContext, createServer, type SecureContext, type Server } from 'node:tls';
import type { LiveTls } from '../http/listen.ts';
import { protocolsOf } from './client-hello.ts';

const protocol = 'acme-tls/1';
const helloMs = 15_000;

export interface AcmeTls extends LiveTls {
  readonly hasCertificate: boolean;
  /** Gives the listeners another certificate, for connections from now on. */
  use(pem: Buffer): void;
  /** Answers the authority about a host; resolves to how to take that back. */
  answer(host: string, keyAuthorization: string): Promise<() => void>;
}

/** `pem`: the chain and its key, once there is one. */
export function createTls(pem: Buffer | undefined): AcmeTls {
  let current = pem;
  const servers = new Set<HttpsServer>();
  const answers = new Map<string, SecureContext>();
  let answering: Server | undefined;

  function give(server: HttpsServer): void {
    if (current) server.setSecureContext({ cert: current, key: current, minVersion: 'TLSv1.2' });
  }

  /** Speaks with the authority alone; it does not listen. */
  function answeringServer(): Server {
    answering ??= createServer({
      ALPNProtocols: [protocol],
      handshakeTimeout: helloMs,
      SNICallback: (name, done) => done(null, answers.get(name.toLowerCase())),
    })
      .on('secureConnection', (socket) => socket.on('error', () => {}).end())
      .on('tlsClientError', (_error, socket) => socket.destroy());
    return answering;
  }

  return {
    get hasCertificate() {
      return current !== undefined;
    },
    attach(server) {
      servers.add(server);
      server.once('close', () => servers.delete(server));
      give(server);
      const [handshake] = server.listeners('connection') as ((socket: Socket) => void)[];
      if (!handshake) return;
      server.off('connection', handshake);
      server.on('connection', (socket: Socket) => {
        if (answers.size === 0) return handshake.call(server, socket);
        readHello(socket, (protocols) => {
          if (!protocols.includes(protocol)) handshake.call(server, socket);
          else answeringServer().emit('connection', socket);
        });
      });
    },
    use(next) {
      current = next;
      for (const server of servers) give(server);
    },
    async answer(host, keyAuthorization) {
      const { crypto } = (await import('./library.ts')).acme;
      const [key, cert] = await crypto.createAlpnCertificate(
        { identifier: { type: 'dns', value: host } } as never,
        keyAuthorization,
        await crypto.createPrivateEcdsaKey(),
      );
      const context = createSecureContext({ key, cert });
      answers.set(host, context);
      return () => {
        if (answers.get(host) === context) answers.delete(host);
      };
    },
  };
}

/** Reads the first message and puts it back. What never becomes one is closed in time. */
function readHello(socket: Socket, onHello: (protocols: readonly string[]) => void): void {
  let bytes = Buffer.alloc(0);
  const close = () => socket.destroy();
  const late = setTimeout(close, helloMs);
  const onData = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    const protocols = protocolsOf(bytes);
    if (!protocols) return;
    stop();
    socket.pause();
    socket.unshift(bytes);
    onHello(protocols);
  };
  const stop = () => {
    clearTimeout(late);
    socket.off('data', onData).off('end', close).off('error', close);
  };
  socket.on('data', onData).on('end', close).on('error', close);
  socket.once('close', () => clearTimeout(late));
}
