/**
 * One client of the login node: let in with the gateway's key, then served until its socket closes. ssh2 does transport and
 * authentication (1.17.0, pinned; the only file that knows its inside). Messages of channels are read here.
 */
import { timingSafeEqual } from 'node:crypto';
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import type { AuthContext, Connection, ParsedKey } from 'ssh2';
import type { Logger } from '../../../lib/log.ts';
import { loopbackAddresses } from '../../../lib/loopback.ts';
import { OPEN_FAILURE, SSH } from '../../../lib/ssh/message-numbers.ts';
import { message, WireReader } from '../../../lib/ssh/wire.ts';
import { Channel } from './channel.ts';
import type { SessionContext } from './command.ts';
import { Session } from './session.ts';

const loginGrace = 30_000;
const maxAttempts = 6;
const maxChannels = 256;

export interface ClientHost {
  gatewayKeys: readonly ParsedKey[];
  hasAccount(username: string): boolean;
  /** What a session of this account needs. `clientPort` is where the connection comes from. Throws when there must be none. */
  context(username: string, clientPort: number | undefined): SessionContext;
  log: Logger;
}

/** What of ssh2's connection is used here. `write` frames a message. */
interface Inside {
  _protocol: {
    _onPayload(payload: Buffer): unknown;
    _packetRW: {
      write: { allocStart: number; alloc(length: number): Buffer; finalize(packet: Buffer): Buffer };
    };
  };
  _sock: Socket;
}

const { sendPacket } = createRequire(import.meta.url)('ssh2/lib/protocol/utils.js') as {
  sendPacket(protocol: object, packet: Buffer): void;
};

export class Client {
  /** Undefined until it has logged in. */
  username: string | undefined;
  readonly #host: ClientHost;
  readonly #protocol: Inside['_protocol'];
  readonly #socket: Socket;
  readonly #channels = new Map<number, Channel>();
  readonly #clientPort: number | undefined;
  #lastChannel = 0;
  #attempts = 0;
  #isReady = false;

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
    connection.on('error', (error) => {
      host.log.debug('login_node_connection_error', { error });
      // ssh2 only stops sending; a client that broke the protocol must be disconnected.
      socket.destroy();
    });
    socket.on('close', () => {
      clearTimeout(grace);
      closed();
      for (const channel of this.#channels.values()) channel.closed(false);
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
    if (!this.#isReady || type < SSH.CHANNEL_OPEN || type > SSH.CHANNEL_FAILURE) return inner(payload);
    if (type === SSH.CHANNEL_OPEN) this.#open(details);
    else this.#channels.get(details.uint32())?.receive(type, details);
  }

  #send(payload: Buffer): void {
    const { write } = this.#protocol._packetRW;
    const packet = write.alloc(payload.length);
    packet.set(payload, write.allocStart);
    sendPacket(this.#protocol, write.finalize(packet));
  }

  #open(details: WireReader): void {
    const type = details.text();
    const [remote, window] = [{ uint32: details.uint32() }, details.uint32()];
    // The longest packet follows, which nobody has shorter than ours.
    details.uint32();
    const refuse = (reason: number) =>
      this.#send(message(SSH.CHANNEL_OPEN_FAILURE, remote, { uint32: reason }, 'refused', ''));
    if (this.#channels.size >= maxChannels) refuse(OPEN_FAILURE.RESOURCE_SHORTAGE);
    else if (type === 'session') this.#serve(this.#add(remote, window));
    else if (type !== 'direct-tcpip') refuse(OPEN_FAILURE.UNKNOWN_TYPE);
    else {
      const add = () => this.#add(remote, window);
      void this.#forward(details.text(), details.uint32(), add, () => refuse(OPEN_FAILURE.CONNECT_FAILED));
    }
  }

  #add(remote: { uint32: number }, window: number): Channel {
    this.#lastChannel += 1;
    const local = this.#lastChannel;
    const send = (payload: Buffer) => this.#send(payload);
    const channel = new Channel({ local, remote, window }, send, () => this.#channels.delete(local));
    this.#channels.set(local, channel);
    return channel;
  }

  #serve(channel: Channel): void {
    const { log } = this.#host;
    const username = this.username ?? '';
    new Session(
      channel,
      () => this.#host.context(username, this.#clientPort),
      (error) => log.error('login_node_session_failed', { username, error }),
    );
  }

  /** Local port forwarding to the login node's loopback; every other destination is refused. */
  async #forward(host: string, port: number, add: () => Channel, refuse: () => void): Promise<void> {
    const isPort = port >= 1 && port <= 65_535;
    const socket = isPort ? await firstConnection(loopbackAddresses(host), port) : undefined;
    if (!socket || this.#socket.destroyed) {
      socket?.destroy();
      return refuse();
    }
    const isFlushed = new Promise((resolve) => socket.once('close', resolve));
    const channel = add();
    channel.onClosed = () => {
      socket.destroy();
      channel.close();
    };
    channel.pipeTo(socket);
    await channel.sendAll('stdout', socket);
    channel.eof();
    await isFlushed;
    channel.close();
  }
}

async function firstConnection(addresses: string[], port: number): Promise<Socket | undefined> {
  for (const host of addresses) {
    const socket = await new Promise<Socket | undefined>((resolve) => {
      const attempt = connect({ host, port, allowHalfOpen: true, noDelay: true });
      attempt.once('connect', () => resolve(attempt));
      attempt.on('error', () => resolve(undefined));
    });
    if (socket) return socket;
  }
  return undefined;
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
