/** The SSH server of a login node: its clients, the accounts that they may log in to, and the end of it all. */
import type { Socket } from 'node:net';
import ssh2 from 'ssh2';
import type { Logger } from '../../../../lib/log.ts';
import { Client, type ClientHost } from './client.ts';
import { homeOf } from './homes.ts';
import type { Account } from './messages.ts';
import type { MakePipes } from './pipes.ts';
import { endProcesses } from './processes.ts';
import type { Sandbox, SandboxFiles } from './sandbox.ts';
import type { SessionHost } from './session.ts';

/** OpenSSH's client tells only a server of this name that nobody reads the output any more. */
const ident = 'OpenSSH_Andromeda_LoginNode';
/**
 * The fastest ones, and no choice: a client's own order would put others first. Not ChaCha20 in any case: ssh2's
 * native cipher for it fails with Node 24.21's OpenSSL 3.5.8 ("invalid operation").
 */
const ciphers = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'] as const;
const recheckAfter = [2_000, 10_000, 60_000];

export interface ServerParts {
  hostKey: string;
  authorizedKeys: readonly string[];
  sandbox: Sandbox;
  files: SandboxFiles;
  makePipes: MakePipes | undefined;
  sftp: 'system' | 'own';
  /** Where clients connect; it does not listen itself. */
  port: number;
  /** Called, and waited for, before a session begins. */
  beforeSession(): Promise<void>;
  log: Logger;
}

export class LoginServer {
  readonly #parts: ServerParts;
  readonly #server: ssh2.Server;
  readonly #clients = new Set<Client>();
  #accounts = new Map<string, Account>();

  constructor(parts: ServerParts) {
    const gatewayKeys = parts.authorizedKeys.map((text) => {
      const key = ssh2.utils.parseKey(text);
      if (key instanceof Error) throw new Error(`The gateway's key cannot be read: ${key.message}`);
      return key;
    });
    this.#parts = parts;
    const host: ClientHost = {
      gatewayKeys,
      hasAccount: (username) => this.#accounts.has(username),
      sessionHost: (username, clientPort) => this.#sessionHost(username, clientPort),
      log: parts.log,
    };
    this.#server = new ssh2.Server(
      { hostKeys: [parts.hostKey], ident, algorithms: { compress: ['none'], cipher: [...ciphers] } },
      (connection) => {
        const client: Client = new Client(connection, host, () => this.#clients.delete(client));
        this.#clients.add(client);
      },
    );
  }

  /** Serves a client whose connection somebody else took. */
  adopt(socket: Socket): void {
    this.#server.injectSocket(socket);
  }

  /** Ends the sessions of accounts that are gone or whose numbers changed. */
  async setAccounts(accounts: readonly Account[]): Promise<void> {
    const before = this.#accounts;
    this.#accounts = new Map(accounts.map((account) => [account.username, account]));
    const removed = [...before.values()].filter((old) => {
      const now = this.#accounts.get(old.username);
      return !now || now.uid !== old.uid || now.gid !== old.gid;
    });
    if (removed.length === 0) return;
    const names = new Set(removed.map(({ username }) => username));
    for (const client of this.#clients) if (client.username && names.has(client.username)) client.end();
    await endProcesses({ ...this.#parts, accounts: removed });
    for (const delay of recheckAfter) setTimeout(() => void this.#recheck(removed), delay).unref();
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.end();
    await endProcesses({ sandbox: this.#parts.sandbox, port: this.#parts.port });
    // Also what is in a mount namespace of its own.
    if (this.#parts.sandbox.kind === 'namespace')
      await endProcesses({ ...this.#parts, accounts: [...this.#accounts.values()] });
  }

  #sessionHost(username: string, clientPort: number | undefined): SessionHost {
    const { sandbox, files, port, makePipes, sftp, beforeSession, log } = this.#parts;
    return {
      context: async () => {
        await beforeSession();
        const account = this.#accounts.get(username);
        if (!account) throw new Error(`The account ${username} is gone.`);
        const sshConnection = `127.0.0.1 ${clientPort} 127.0.0.1 ${port}`;
        return { sandbox, account, home: homeOf(sandbox, files, account), sshConnection };
      },
      makePipes,
      sftp,
      failed: (error) => log.error('login_node_session_failed', { username, error }),
    };
  }

  /** While another login node has sessions of the same person, somebody can hide from being found for a while. */
  async #recheck(removed: readonly Account[]): Promise<void> {
    const uids = new Set([...this.#accounts.values()].map(({ uid }) => uid));
    const gone = removed.filter(({ uid }) => !uids.has(uid));
    if (gone.length === 0) return;
    await endProcesses({ ...this.#parts, accounts: gone }).catch((error: unknown) =>
      this.#parts.log.error('login_node_sessions_left', { error }),
    );
  }
}
