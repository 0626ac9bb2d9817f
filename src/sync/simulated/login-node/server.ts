/** The SSH server of a login node: its clients, the accounts that they may log in to, and the end of it all. */
import type { Socket } from 'node:net';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import type { Logger } from '../../../lib/log.ts';
import { Client, type ClientHost } from './client.ts';
import type { SessionContext } from './command.ts';
import { prepareHomes } from './homes.ts';
import type { Account, Settings } from './messages.ts';
import { endAccount, endProcesses } from './processes.ts';
import { requireOrdinary } from './sandbox.ts';

/** OpenSSH's client sends `eow` (the output is no longer read) only to a server whose name begins with `OpenSSH`. */
const ident = 'OpenSSH_Andromeda_LoginNode';
/**
 * The fastest ones, and no choice: a client's own order would put others first. Not ChaCha20 in any case: ssh2's
 * native cipher for it fails with Node 24.21's OpenSSL 3.5.8 ("invalid operation").
 */
const ciphers = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'] as const;

type ServerParts = Omit<Settings, 'accounts'> & { log: Logger };

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
      context: (username, clientPort) => this.#contextOf(username, clientPort),
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

  /** Serves a client whose connection another process accepted. */
  adopt(socket: Socket): void {
    this.#server.injectSocket(socket);
  }

  /** Makes homes, and ends the sessions of accounts that are gone or whose numbers changed. Throws a sentence for the operator. */
  async setAccounts(accounts: readonly Account[]): Promise<void> {
    requireUsable(accounts);
    await prepareHomes(this.#parts.sandbox, this.#parts.homes, accounts);
    const before = this.#accounts;
    this.#accounts = new Map(accounts.map((account) => [account.username, account]));
    const removed = [...before.values()].filter((old) => {
      const now = this.#accounts.get(old.username);
      return !now || now.uid !== old.uid || now.gid !== old.gid;
    });
    if (removed.length === 0) return;
    const names = new Set(removed.map(({ username }) => username));
    for (const client of this.#clients) if (client.username && names.has(client.username)) client.end();
    for (const account of removed) await endAccount(this.#parts, account);
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.end();
    const { sandbox, port } = this.#parts;
    // Of namespaces nothing is left behind this process.
    if (sandbox !== 'namespaces') await endProcesses(port);
  }

  #contextOf(username: string, clientPort: number | undefined): SessionContext {
    const { sandbox, homes, port } = this.#parts;
    const account = this.#accounts.get(username);
    if (!account) throw new Error(`The account ${username} is gone.`);
    return { sandbox, account, home: join(homes, username), ports: { client: clientPort, server: port } };
  }
}

/** The names become paths and lines of passwd, so they are checked here again. */
function requireUsable(accounts: readonly Account[]): void {
  for (const account of accounts) {
    if (!/^[a-z][a-z0-9_-]{0,31}$/.test(account.username)) {
      throw new Error(`"${account.username}" is not a username.`);
    }
    requireOrdinary(account);
  }
}
