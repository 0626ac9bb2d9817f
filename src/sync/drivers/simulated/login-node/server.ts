/** The SSH server of a login node: who may log in, what a connection may open, and the end of it all. */
import { timingSafeEqual } from 'node:crypto';
import type { AddressInfo, Socket } from 'node:net';
import ssh2, { type AuthContext, type Connection, type ParsedKey } from 'ssh2';
import type { Logger } from '../../../../lib/log.ts';
import type { Channel } from './channel.ts';
import { type ConnectionLayer, connectionLayer } from './connection.ts';
import { forward } from './forward.ts';
import { homeOf } from './homes.ts';
import type { Account } from './messages.ts';
import type { MakePipes } from './pipes.ts';
import type { Place, PlaceDirs } from './place.ts';
import { endProcesses } from './processes.ts';
import { type Session, serveSession } from './session.ts';
import { takeOver } from './transport.ts';

/** OpenSSH's client tells only a server of this name that nobody reads the output any more. */
const ident = 'OpenSSH_Andromeda_LoginNode';
/**
 * The fastest ones, and no choice: a client's own order would put others first. Not ChaCha20 in any case: ssh2's
 * native cipher for it fails with Node 24.21's OpenSSL 3.5.8 ("invalid operation").
 */
const ciphers = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'] as const;
const loginGrace = 30_000;
const maxAttempts = 6;
const lookAgainAfter = [2_000, 10_000, 60_000];

export interface ServerParts {
  hostKey: string;
  authorizedKey: string;
  place: Place;
  dirs: PlaceDirs;
  makePipes: MakePipes | undefined;
  sftp: 'system' | 'own';
  /** Where clients connect when it does not listen itself. */
  port?: number | undefined;
  /** Called, and waited for, before a session begins. */
  beforeSession(): Promise<void>;
  log: Logger;
}

export interface LoginServer {
  listen(): Promise<number>;
  /** Serves a client whose connection somebody else took. */
  adopt(socket: Socket): void;
  /** Ends the sessions of accounts that are gone or whose numbers changed. */
  setAccounts(accounts: readonly Account[]): Promise<void>;
  stop(): Promise<void>;
}

export function createLoginServer(parts: ServerParts): LoginServer {
  const { place, dirs, log } = parts;
  const authorized = ssh2.utils.parseKey(parts.authorizedKey);
  if (authorized instanceof Error) throw new Error(`The gateway's key cannot be read: ${authorized.message}`);
  const gatewayKey: ParsedKey = authorized;
  const open = new Map<Connection, { end(): void; username: string | undefined }>();
  let accounts = new Map<string, Account>();
  let port = parts.port ?? 0;

  const server = new ssh2.Server(
    { hostKeys: [parts.hostKey], ident, algorithms: { compress: ['none'], cipher: [...ciphers] } },
    (client) => serve(client),
  );

  function serve(client: Connection): void {
    let layer: ConnectionLayer | undefined;
    const sessions = new WeakMap<Channel, Session>();
    const { transport, socket } = takeOver(client, (message) => {
      if (!layer) throw new Error('a message of the connection protocol before authentication');
      layer.receive(message);
    });
    socket.setNoDelay(true);
    const state = { username: undefined as string | undefined, end: () => socket.destroy() };
    open.set(client, state);
    const grace = setTimeout(() => socket.destroy(), loginGrace);
    const sshConnection = `127.0.0.1 ${socket.remotePort} 127.0.0.1 ${port}`;
    let attempts = 0;

    client.on('authentication', (attempt: AuthContext) => {
      if (accounts.has(attempt.username) && isKey(attempt, gatewayKey)) {
        state.username = attempt.username;
        return attempt.accept();
      }
      if (attempt.method === 'none') return attempt.reject(['publickey']);
      attempts += 1;
      if (attempts > maxAttempts) return socket.destroy();
      attempt.reject(['publickey']);
    });
    client.on('ready', () => {
      clearTimeout(grace);
      const username = state.username ?? '';
      log.debug('login_node_session_opened', { username });
      layer = connectionLayer(transport, socket, {
        open: (request) => {
          if (request.type === 'direct-tcpip') {
            forward(request).catch((error: unknown) =>
              log.warn('login_node_forward_failed', { username, error }),
            );
            return;
          }
          const channel = request.accept();
          if (channel) sessions.set(channel, serveSession(channel, host(username, sshConnection)));
        },
        request: (channel, type, details) => sessions.get(channel)?.request(type, details) ?? false,
      });
    });
    client.on('error', (error) => {
      log.debug('login_node_connection_error', { error });
      // ssh2 only stops sending: whoever broke the protocol must not go on.
      socket.destroy();
    });
    socket.on('close', () => {
      clearTimeout(grace);
      open.delete(client);
      layer?.lost();
    });
  }

  function host(username: string, sshConnection: string) {
    return {
      async context() {
        await parts.beforeSession();
        const account = accounts.get(username);
        if (!account) throw new Error(`The account ${username} is gone.`);
        return { place, account, home: homeOf(place, dirs, account), sshConnection };
      },
      makePipes: parts.makePipes,
      sftp: parts.sftp,
      failed: (error: unknown) => log.error('login_node_session_failed', { username, error }),
    };
  }

  /** While another login node has sessions of the same person, somebody can hide from being found for a while. */
  async function lookAgain(removed: readonly Account[]): Promise<void> {
    const uids = new Set([...accounts.values()].map(({ uid }) => uid));
    const gone = removed.filter(({ uid }) => !uids.has(uid));
    if (gone.length === 0) return;
    await endProcesses({ place, port, accounts: gone }).catch((error: unknown) =>
      log.error('login_node_sessions_left', { error }),
    );
  }

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        server.on('error', reject);
        server.listen(0, '127.0.0.1', () => {
          port = (server.address() as AddressInfo).port;
          server.off('error', reject);
          server.on('error', (error: unknown) => log.error('login_node_listen_error', { error }));
          resolve(port);
        });
      }),
    adopt: (socket) => void server.injectSocket(socket),
    async setAccounts(next) {
      const before = accounts;
      accounts = new Map(next.map((account) => [account.username, account]));
      const removed = [...before.values()].filter((old) => {
        const now = accounts.get(old.username);
        return !now || now.uid !== old.uid || now.gid !== old.gid;
      });
      const names = new Set(removed.map((account) => account.username));
      for (const state of open.values()) if (state.username && names.has(state.username)) state.end();
      if (removed.length === 0) return;
      await endProcesses({ place, port, accounts: removed });
      for (const delay of lookAgainAfter) setTimeout(() => void lookAgain(removed), delay).unref();
    },
    async stop() {
      server.close();
      for (const state of open.values()) state.end();
      await endProcesses({ place, port });
      // Also what is in a mount namespace of its own.
      if (place.kind === 'namespace') await endProcesses({ place, port, accounts: [...accounts.values()] });
    },
  };
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
