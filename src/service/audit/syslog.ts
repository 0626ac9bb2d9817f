/**
 * The audit trail to a syslog server: RFC 5424 messages over UDP (RFC 5426), TCP (RFC 6587, octet counting) or TLS
 * (RFC 5425). Syslog has no acknowledgements. Over TCP and TLS the connection is ended after each batch: a server that closes
 * it in return has read all of it, as RFC 5425 (section 4.4) requires; one that resets it, or is silent, gets the batch again.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { isIP, type Socket, connect as tcpConnect } from 'node:net';
import { hostname } from 'node:os';
import { connect as tlsConnect } from 'node:tls';
import type { AuditMessage } from './messages.ts';
import type { Destination } from './sender.ts';

export interface SyslogAddress {
  protocol: 'udp' | 'tcp' | 'tls';
  host: string;
  port: number;
  /** PEM: the authorities to trust over TLS, instead of the well-known ones. */
  ca: Buffer | undefined;
  /** PEM: what this service shows of itself over TLS. */
  client: { cert: Buffer; key: Buffer } | undefined;
  /** How long a server may take to read a batch. */
  timeoutMs: number;
}

const connectMs = 10_000;
/**
 * Between a batch and the end of its connection. A server that closed on its own account before it had the batch is known by
 * then, and one that closes later without having read it resets the connection.
 */
const settleMs = 100;

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

function overUdp({ host, port, timeoutMs }: SyslogAddress): Transport {
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
      // Connected, so that the next message fails if no process listens on the port.
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
        await within<void>(timeoutMs, 'did not take a message', close, (resolve, reject) =>
          to.send(line(message), (error) => (error ? reject(error) : resolve())),
        );
      }
    },
    close,
  };
}

function overStream(address: SyslogAddress): Transport {
  let socket: Socket | undefined;
  function close() {
    socket?.destroy();
    socket = undefined;
  }
  return {
    async send(messages) {
      const frames = messages.map(line).map((text) => `${Buffer.byteLength(text)} ${text}`);
      socket = connect(address);
      try {
        await deliver(socket, frames.join(''), address);
      } finally {
        close();
      }
    },
    close,
  };
}

/** Resolves when the server closes the connection in return for its end; rejects whatever else becomes of it. */
function deliver(
  socket: Socket,
  frames: string,
  { protocol, host, timeoutMs }: SyslogAddress,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const late = (what: string, ms: number) => () =>
    reject(new Error(`${host} ${what} within ${ms / 1000} seconds`));
  let isEnding = false;
  let settling: NodeJS.Timeout | undefined;
  let deadline = setTimeout(late('did not connect', connectMs), connectMs);
  socket.on('error', reject);
  socket.on('close', () => reject(new Error(`${host} closed the connection`)));
  socket.on('end', () => {
    if (isEnding) resolve();
    else reject(new Error(`${host} closed the connection before it had everything`));
  });
  // A server sends nothing, but `end` is emitted only while the socket is read.
  socket.resume();
  socket.once(protocol === 'tls' ? 'secureConnect' : 'connect', () => {
    clearTimeout(deadline);
    deadline = setTimeout(late('did not read everything and close the connection', timeoutMs), timeoutMs);
    socket.write(frames, () => {
      settling = setTimeout(() => {
        isEnding = true;
        socket.end();
      }, settleMs);
    });
  });
  return promise.finally(() => {
    clearTimeout(deadline);
    clearTimeout(settling);
  });
}

function connect({ protocol, host, port, ca, client }: SyslogAddress): Socket {
  return protocol === 'tls'
    ? tlsConnect({ host, port, ca, ...client, ...named(host) })
    : tcpConnect({ host, port });
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
