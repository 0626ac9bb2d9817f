/**
 * One client of the login node: let in with the gateway's key, then served until its socket closes. ssh2 does transport,
 * authentication, channels and their windows (1.17.0, pinned; the only file that knows its inside). Requests on channels are read
 * here: its own reading drops clients with terminal modes that it does not know, and requests that it does not know.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import type { AuthContext, Connection, ParsedKey } from 'ssh2';
import type { Logger } from '../../../lib/log.ts';
import { OPEN_FAILURE, SSH } from '../../../lib/ssh/message-numbers.ts';
import { message, WireReader } from '../../../lib/ssh/wire.ts';
import { Channel, type Inside as ChannelInside, type Protocol } from './channel.ts';
import { forward } from './forward.ts';
import { Session, type SessionHost } from './session.ts';

const loginGrace = 30_000;
const maxAttempts = 6;
const maxChannels = 256;

export interface ClientHost {
  gatewayKeys: readonly ParsedKey[];
  hasAccount(username: string): boolean;
  /** What a session of this account needs. `clientPort` is where the connection comes from. */
  sessionHost(username: string, clientPort: number | undefined): SessionHost;
  log: Logger;
}

interface Inside {
  _protocol: Protocol & {
    _onPayload(payload: Buffer): unknown;
    channelOpenFail(remote: number, reason: number, description: string): void;
  };
  _sock: Socket;
}

export class Client {
  /** Undefined until it has logged in. */
  username: string | undefined;
  readonly #host: ClientHost;
  readonly #protocol: Inside['_protocol'];
  readonly #socket: Socket;
  readonly #channels = new Map<number, { channel: Channel; session?: Session }>();
  readonly #clientPort: number | undefined;
  #attempts = 0;
  #isReady = false;
  #isSession = false;

  /** Must be called while ssh2 emits `connection`: the ciphers take what reads messages over at the first key exchange. */
  constructor(connection: Connection, host: ClientHost, closed: () => void) {
    this.#host = host;
    const { _protocol: protocol, _sock: socket } = connection as unknown as Inside;
    this.#protocol = protocol;
    this.#socket = socket;
    this.#clientPort = socket.remotePort;
    const inner = protocol._onPayload;
    protocol._onPayload = (payload) => this.#receive(payload, inner);
    socket.setNoDelay(true);
    const grace = setTimeout(() => socket.destroy(), loginGrace);
    connection.on('authentication', (attempt) => this.#authenticate(attempt));
    connection.on('ready', () => {
      clearTimeout(grace);
      this.#isReady = true;
      host.log.debug('login_node_session_opened', { username: this.username ?? '' });
    });
    connection.on('tcpip', (accept, reject, { destIP, destPort }) => {
      const open = () => this.#add(accept() as unknown as ChannelInside);
      if (this.#isSession) this.#serve(open());
      else void forward({ host: destIP, port: destPort }, open, reject);
    });
    connection.on('error', (error) => {
      host.log.debug('login_node_connection_error', { error });
      // ssh2 only stops sending; a client that broke the protocol must be disconnected.
      socket.destroy();
    });
    socket.on('close', () => {
      clearTimeout(grace);
      closed();
      for (const { channel } of this.#channels.values()) channel.closed(false);
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

  /** Takes a message before ssh2 does. What it throws ends the connection. */
  #receive(payload: Buffer, inner: (payload: Buffer) => unknown): unknown {
    const details = new WireReader(payload);
    const type = details.byte();
    if (!this.#isReady || type < SSH.CHANNEL_OPEN) return inner(payload);
    if (type === SSH.CHANNEL_OPEN) return this.#open(payload, details, inner);
    const found = this.#channels.get(details.uint32());
    if (type === SSH.CHANNEL_CLOSE && found) {
      const copy = Buffer.from(payload);
      return found.channel.closed(true, () => inner(copy));
    }
    if (type !== SSH.CHANNEL_REQUEST) return inner(payload);
    const request = details.text();
    const isAnswered = details.bool();
    const done = found?.session?.request(request, details) ?? false;
    if (isAnswered && found) found.channel.reply(done);
  }

  /** ssh2 makes a plain channel only of what is forwarded, so that a session is opened as that. */
  #open(payload: Buffer, details: WireReader, inner: (payload: Buffer) => unknown): unknown {
    const type = details.text();
    const remote = details.uint32();
    const [window, packet] = [details.uint32(), details.uint32()];
    if (this.#channels.size >= maxChannels)
      return this.#protocol.channelOpenFail(remote, OPEN_FAILURE.RESOURCE_SHORTAGE, 'too many channels');
    if (type !== 'session') return inner(payload);
    const nowhere = ['', { uint32: 0 }, '', { uint32: 0 }] as const;
    const sizes = [{ uint32: remote }, { uint32: window }, { uint32: packet }] as const;
    this.#isSession = true;
    try {
      return inner(message(SSH.CHANNEL_OPEN, 'direct-tcpip', ...sizes, ...nowhere));
    } finally {
      this.#isSession = false;
    }
  }

  #add(stream: ChannelInside): Channel {
    const channel = new Channel(stream, this.#protocol, () => this.#channels.delete(stream.incoming.id));
    this.#channels.set(stream.incoming.id, { channel });
    return channel;
  }

  #serve(channel: Channel): void {
    const session = new Session(channel, this.#host.sessionHost(this.username ?? '', this.#clientPort));
    this.#channels.set(channel.id, { channel, session });
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
