/**
 * The SSH server of a login node: its clients and the accounts that they may log in to. ssh2 does transport and
 * authentication (1.17.0, pinned; only this file depends on its internals). Channel messages are handled here.
 */
import { timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import ssh2, { type AuthContext, type Connection, type ParsedKey } from 'ssh2';
import type { Logger } from '../../../lib/log.ts';
import { isLoopback } from '../../../lib/source-address.ts';
import { message, OPEN_FAILURE, SSH, WireReader } from '../../../lib/ssh/wire.ts';
import { Channel } from './channel.ts';
import type { SessionContext } from './command.ts';
import { prepareHomes } from './homes.ts';
import type { Account, StartSettings } from './messages.ts';
import { endAccount, endProcesses } from './processes.ts';
import { requireOrdinary } from './sandbox.ts';
import { Session } from './session.ts';

const require = createRequire(import.meta.url);

/** OpenSSH's client sends `eow` (output is no longer read) only to a server whose version begins with `OpenSSH`. */
const ident = 'OpenSSH_Andromeda_LoginNode';
/**
 * Only the fastest ciphers, because a client's own order would prefer others. Not ChaCha20 in any case: ssh2's native cipher
 * for it fails with Node 24.21's OpenSSL 3.5.8 ("invalid operation").
 */
const ciphers = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'] as const;
const loginGrace = 30_000;
const maxAttempts = 6;
const maxChannels = 256;

type ServerParts = Omit<StartSettings, 'accounts'> & { log: Logger };

export class LoginServer {
  readonly parts: ServerParts;
  gatewayKeys: readonly ParsedKey[] = [];
  accounts: ReadonlyMap<string, Account> = new Map();
  readonly #server: ssh2.Server;
  readonly #clients = new Set<Client>();

  constructor(parts: ServerParts) {
    this.parts = parts;
    this.#server = new ssh2.Server(
      { hostKeys: [parts.hostKey], ident, algorithms: { compress: ['none'], cipher: [...ciphers] } },
      (connection) => {
        const client: Client = new Client(connection, this, () => this.#clients.delete(client));
        this.#clients.add(client);
      },
    );
  }

  /** Serves a client whose connection the parent process accepted. From now on, these keys open accounts. */
  adopt(socket: Socket, authorizedKeys: readonly string[]): void {
    this.gatewayKeys = authorizedKeys.map((text) => {
      const key = ssh2.utils.parseKey(text);
      if (key instanceof Error) throw new Error(`The gateway's key cannot be read: ${key.message}`);
      return key;
    });
    this.#server.injectSocket(socket);
  }

  /** Creates homes, and ends sessions of accounts that are gone or have new ids. Throws a message for the operator. */
  async setAccounts(accounts: readonly Account[]): Promise<void> {
    requireUsable(accounts);
    await prepareHomes(this.parts.sandbox, this.parts.homes, accounts);
    const before = this.accounts;
    this.accounts = new Map(accounts.map((account) => [account.username, account]));
    const removed = [...before.values()].filter((old) => {
      const now = this.accounts.get(old.username);
      return !now || now.uid !== old.uid || now.gid !== old.gid;
    });
    if (removed.length === 0) return;
    const names = new Set(removed.map(({ username }) => username));
    for (const client of this.#clients) if (client.username && names.has(client.username)) client.end();
    for (const account of removed) await endAccount(this.parts, account);
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.end();
    const { sandbox, port } = this.parts;
    // In namespaces, the kernel kills all processes with this one.
    if (sandbox !== 'namespaces') await endProcesses(port);
  }
}

/** Checked here again, because usernames become paths and lines of passwd. */
function requireUsable(accounts: readonly Account[]): void {
  for (const account of accounts) {
    if (!/^[a-z][a-z0-9_-]{0,31}$/.test(account.username)) {
      throw new Error(`"${account.username}" is not a username.`);
    }
    requireOrdinary(account);
  }
}

/** The internals of ssh2's connection used here. `write` frames a message. */
interface ConnectionInternals {
  _protocol: {
    _onPayload(payload: Buffer): unknown;
    _packetRW: {
      write: { allocStart: number; alloc(length: number): Buffer; finalize(packet: Buffer): Buffer };
    };
  };
  _sock: Socket;
}

const { sendPacket } = require('ssh2/lib/protocol/utils.js') as {
  sendPacket(protocol: object, packet: Buffer): void;
};

/** A connection: authenticated with the gateway's key, then served until its socket closes. */
class Client {
  /** Undefined before authentication. */
  username: string | undefined;
  readonly #server: LoginServer;
  readonly #protocol: ConnectionInternals['_protocol'];
  readonly #socket: Socket;
  readonly #channels = new Map<number, Channel>();
  readonly #clientPort: number | undefined;
  #lastChannel = 0;
  #attempts = 0;
  #isReady = false;

  /** Must be called while ssh2 emits `connection`: at the first key exchange the ciphers keep the payload handler of that time. */
  constructor(connection: Connection, server: LoginServer, closed: () => void) {
    this.#server = server;
    const { log } = server.parts;
    const { _protocol: protocol, _sock: socket } = connection as unknown as ConnectionInternals;
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
      log.debug('login_node_session_opened', { username: this.username ?? '' });
    });
    connection.on('error', (error) => {
      log.debug('login_node_connection_error', { error });
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
    const { accounts, gatewayKeys } = this.#server;
    if (accounts.has(attempt.username) && gatewayKeys.some((key) => isKey(attempt, key))) {
      this.username = attempt.username;
      attempt.accept();
      return;
    }
    if (attempt.method !== 'none') this.#attempts += 1;
    if (this.#attempts > maxAttempts) this.end();
    else attempt.reject(['publickey']);
  }

  /** Handles a message before ssh2 does. An error that it throws ends the connection. */
  #receive(payload: Buffer, inner: (payload: Buffer) => unknown): unknown {
    const details = new WireReader(payload);
    const type = details.byte();
    if (!this.#isReady || type < SSH.CHANNEL_OPEN || type > SSH.CHANNEL_FAILURE) return inner(payload);
    if (type === SSH.CHANNEL_OPEN) this.#open(details);
    else this.#channels.get(details.uint32())?.receive(type, details);
  }

  #send(payload: Buffer): void {
    if (this.#socket.destroyed) return;
    const { write } = this.#protocol._packetRW;
    const packet = write.alloc(payload.length);
    packet.set(payload, write.allocStart);
    sendPacket(this.#protocol, write.finalize(packet));
  }

  #open(details: WireReader): void {
    const type = details.text();
    const remote = { uint32: details.uint32() };
    const takes = { window: details.uint32(), packet: details.uint32() };
    const refuse = (reason: number) =>
      this.#send(message(SSH.CHANNEL_OPEN_FAILURE, remote, { uint32: reason }, 'refused', ''));
    if (this.#channels.size >= maxChannels) refuse(OPEN_FAILURE.RESOURCE_SHORTAGE);
    else if (type === 'session') this.#serve(this.#add(remote, takes));
    else if (type !== 'direct-tcpip') refuse(OPEN_FAILURE.UNKNOWN_TYPE);
    else {
      const add = () => this.#add(remote, takes);
      void this.#forward(details.text(), details.uint32(), add, () => refuse(OPEN_FAILURE.CONNECT_FAILED));
    }
  }

  #add(remote: { uint32: number }, takes: { window: number; packet: number }): Channel {
    this.#lastChannel += 1;
    const local = this.#lastChannel;
    const send = (payload: Buffer) => this.#send(payload);
    const channel = new Channel({ local, remote, ...takes }, send, () => this.#channels.delete(local));
    this.#channels.set(local, channel);
    return channel;
  }

  #serve(channel: Channel): void {
    const username = this.username ?? '';
    const onFailed = (error: unknown) =>
      this.#server.parts.log.error('login_node_session_failed', { username, error });
    new Session(channel, () => this.#context(username), onFailed);
  }

  #context(username: string): SessionContext {
    const { sandbox, homes, port: server } = this.#server.parts;
    const account = this.#server.accounts.get(username);
    if (!account) throw new Error(`The account ${username} is gone.`);
    return { sandbox, account, home: join(homes, username), ports: { client: this.#clientPort, server } };
  }

  /** Local port forwarding to the login node's loopback; every other destination is refused. */
  async #forward(host: string, port: number, add: () => Channel, refuse: () => void): Promise<void> {
    if (!isLoopback(host) || port > 65_535) return refuse();
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true, autoSelectFamily: true });
    socket.on('error', () => undefined);
    try {
      await once(socket, 'connect');
    } catch {
      return refuse();
    }
    if (this.#socket.destroyed) socket.destroy();
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

/** Whether an attempt proves possession of the key; without a signature, whether the key would be accepted. */
function isKey(attempt: AuthContext, key: ParsedKey): boolean {
  if (attempt.method !== 'publickey') return false;
  const expected = key.getPublicSSH();
  const { algo, data } = attempt.key;
  if (algo !== key.type || data.length !== expected.length || !timingSafeEqual(data, expected)) return false;
  if (!attempt.signature) return true;
  return attempt.blob !== undefined && key.verify(attempt.blob, attempt.signature, attempt.hashAlgo) === true;
}
