/**
 * The audit trail to a syslog server: RFC 5424 messages over UDP (RFC 5426), TCP (RFC 6587, octet counting) or TLS
 * (RFC 5425). Over UDP and TCP nobody confirms a message: what was under way when a connection broke can be lost, which
 * the numbers of the entries show.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { isIP, type Socket, connect as tcpConnect } from 'node:net';
import { hostname } from 'node:os';
import { connect as tlsConnect } from 'node:tls';
import type { AuditMessage, Destination } from './sender.ts';

export interface SyslogAddress {
  protocol: 'udp' | 'tcp' | 'tls';
  host: string;
  port: number;
  /** PEM: the authorities to trust over TLS, instead of the well-known ones. */
  ca: Buffer | undefined;
}

const connectMs = 10_000;
const sendMs = 30_000;

export function syslogDestination(address: SyslogAddress): Destination {
  const { protocol, host, port } = address;
  const name = `${protocol}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  return { name, ...(protocol === 'udp' ? overUdp(address) : overStream(address)) };
}

/** Facility 13 (log audit), severity 6 (informational); the message is ASCII, so that it needs no byte order mark. */
function line({ kind, at, json }: AuditMessage): string {
  const host =
    hostname()
      .replaceAll(/[^\x21-\x7e]/g, '')
      .slice(0, 255) || '-';
  return `<110>1 ${at} ${host} andromeda ${process.pid} audit-${kind} - ${json}`;
}

type Transport = Pick<Destination, 'send' | 'close'>;

function overUdp({ host, port }: SyslogAddress): Transport {
  let socket: UdpSocket | undefined;
  function close() {
    socket?.close();
    socket = undefined;
  }
  function connected(): Promise<UdpSocket> {
    if (socket) return Promise.resolve(socket);
    const made = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4');
    socket = made;
    return within(connectMs, 'did not connect', close, (resolve, reject) => {
      // Connected, so that a port that nobody listens on is known by the next message.
      made.on('error', (error) => {
        if (socket === made) close();
        reject(error);
      });
      made.connect(port, host, (error?: Error) => (error ? reject(error) : resolve(made)));
    });
  }
  return {
    async send(messages) {
      for (const message of messages) {
        const to = await connected();
        await within<void>(sendMs, 'did not take a message', close, (resolve, reject) =>
          to.send(line(message), (error) => (error ? reject(error) : resolve())),
        );
      }
    },
    close,
  };
}

function overStream({ protocol, host, port, ca }: SyslogAddress): Transport {
  let socket: Socket | undefined;
  function close() {
    socket?.destroy();
    socket = undefined;
  }
  function connected(): Promise<Socket> {
    if (socket) return Promise.resolve(socket);
    const made =
      protocol === 'tls' ? tlsConnect({ host, port, ca, ...named(host) }) : tcpConnect({ host, port });
    socket = made;
    return within(connectMs, 'did not connect', close, (resolve, reject) => {
      made.once(protocol === 'tls' ? 'secureConnect' : 'connect', () => resolve(made));
      made.on('error', reject);
      made.on('close', () => {
        if (socket === made) socket = undefined;
        reject(new Error(`${host} closed the connection`));
      });
      // A server says nothing; it has to be read from for its end to be heard.
      made.resume();
    });
  }
  return {
    async send(messages) {
      const to = await connected();
      const frames = messages.map(line).map((text) => `${Buffer.byteLength(text)} ${text}`);
      await within<void>(sendMs, 'does not read', close, (resolve, reject) =>
        to.write(frames.join(''), (error) => (error ? reject(error) : resolve())),
      );
    },
    close,
  };
}

/** A name for the certificate (SNI); addresses have none (RFC 6066, section 3). */
function named(host: string): { servername?: string } {
  return isIP(host) === 0 ? { servername: host } : {};
}

/** A promise that fails after a while, and then gives the connection up. */
function within<T>(
  limitMs: number,
  what: string,
  giveUp: () => void,
  work: (resolve: (value: T) => void, reject: (error: Error) => void) => void,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const timer = setTimeout(
    () => reject(new Error(`the server ${what} within ${limitMs / 1000} seconds`)),
    limitMs,
  );
  work(resolve, reject);
  return promise
    .catch((error: unknown) => {
      giveUp();
      throw error;
    })
    .finally(() => clearTimeout(timer));
}
