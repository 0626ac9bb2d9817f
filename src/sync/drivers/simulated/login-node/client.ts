/** One client of the login node: let in with the gateway's key, then served until its socket closes. */
import { timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import type { AuthContext, Connection, ParsedKey } from 'ssh2';
import type { Logger } from '../../../../lib/log.ts';
import type { Channel } from './channel.ts';
import { ConnectionLayer, type OpenRequest } from './connection.ts';
import { forward } from './forward.ts';
import { Session, type SessionHost } from './session.ts';
import { type Transport, takeOver } from './transport.ts';

const loginGrace = 30_000;
const maxAttempts = 6;

export interface ClientHost {
  gatewayKeys: readonly ParsedKey[];
  hasAccount(username: string): boolean;
  /** What a session of this account needs. `clientPort` is where the connection comes from. */
  sessionHost(username: string, clientPort: number | undefined): SessionHost;
  log: Logger;
}

export class Client {
  /** Undefined until it has logged in. */
  username: string | undefined;
  readonly #host: ClientHost;
  readonly #transport: Transport;
  readonly #socket: Socket;
  readonly #sessions = new WeakMap<Channel, Session>();
  readonly #clientPort: number | undefined;
  #layer: ConnectionLayer | undefined;
  #attempts = 0;

  /** Must be called while ssh2 emits `connection`. `closed` is called when the socket is gone. */
  constructor(connection: Connection, host: ClientHost, closed: () => void) {
    this.#host = host;
    const { transport, socket } = takeOver(connection, (message) => {
      if (!this.#layer) throw new Error('a message of the connection protocol before authentication');
      this.#layer.receive(message);
    });
    this.#transport = transport;
    this.#socket = socket;
    this.#clientPort = socket.remotePort;
    socket.setNoDelay(true);
    const grace = setTimeout(() => socket.destroy(), loginGrace);
    connection.on('authentication', (attempt) => this.#authenticate(attempt));
    connection.on('ready', () => {
      clearTimeout(grace);
      this.#serve(this.username ?? '');
    });
    connection.on('error', (error) => {
      host.log.debug('login_node_connection_error', { error });
      // ssh2 only stops sending; a client that broke the protocol must be disconnected.
      socket.destroy();
    });
    socket.on('close', () => {
      clearTimeout(grace);
      closed();
      this.#layer?.lost();
    });
  }

  end(): void {
    this.#socket.destroy();
  }

  #authenticate(attempt: AuthContext): void {
    const { gatewayKeys } = this.#host;
    if (this.#host.hasAccount(attempt.username) && gatewayKeys.some((key) => isKey(attempt, key))) {
      this.username = attempt.username;
      attempt.accept();
      return;
    }
    if (attempt.method !== 'none') this.#attempts += 1;
    if (this.#attempts > maxAttempts) this.end();
    else attempt.reject(['publickey']);
  }

  #serve(username: string): void {
    this.#host.log.debug('login_node_session_opened', { username });
    this.#layer = new ConnectionLayer(this.#transport, this.#socket, {
      open: (request) => this.#open(request, username),
      request: (channel, type, details) => this.#sessions.get(channel)?.request(type, details) ?? false,
    });
  }

  #open(request: OpenRequest, username: string): void {
    if (request.type === 'direct-tcpip') {
      forward(request).catch((error: unknown) =>
        this.#host.log.warn('login_node_forward_failed', { username, error }),
      );
      return;
    }
    const channel = request.accept();
    if (!channel) return;
    this.#sessions.set(channel, new Session(channel, this.#host.sessionHost(username, this.#clientPort)));
  }
}

/** Whether an attempt holds the key; without a signature it only asks whether the key would do. */
function isKey(attempt: AuthContext, key: ParsedKey): boolean {
  if (attempt.method !== 'publickey') return false;
  const expected = key.getPublicSSH();
  const { algo, data } = attempt.key;
  if (algo !== key.type || data.length !== expected.length || !timingSafeEqual(data, expected)) return false;
  if (!attempt.signature) return true;
  return attempt.blob !== undefined && key.verify(attempt.blob, attempt.signature, attempt.hashAlgo) === true;
}
