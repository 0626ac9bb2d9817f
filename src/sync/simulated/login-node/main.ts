/** Entry of the login node's process: takes its settings from the server that started it over IPC, and ends when that is gone. */
import type { Socket } from 'node:net';
import { messageOf } from '../../../lib/error-message.ts';
import type { EventLevel, EventName, LogEvents, Logger } from '../../../lib/log.ts';
import { copyEtc, prepareHomes } from './homes.ts';
import type { Account, FromLoginNode, Settings, ToLoginNode } from './messages.ts';
import { hideInherited } from './running.ts';
import { requireOrdinary } from './sandbox.ts';
import { LoginServer } from './server.ts';

interface Node {
  server: LoginServer;
  setAccounts(accounts: readonly Account[]): Promise<void>;
}

serveLoginNode();

/** Serves until a message stops it or until the parent is gone, in whatever way it went. */
function serveLoginNode(): void {
  process.title = 'andromeda login node';
  const log = logger();
  let node: Promise<Node> | undefined;
  let last: Promise<void> = Promise.resolve();
  // Whatever groups root has here, no session may inherit them.
  if (process.getuid?.() === 0) process.setgroups?.([]);

  process.on('uncaughtException', (error) => {
    log.error('login_node_crashed', { error });
    void finish(1);
  });
  process.on('message', (message: ToLoginNode, handle: unknown) => {
    if (message.type === 'start') {
      node = start(message.settings, log);
      node.catch((error: unknown) => {
        send({ type: 'failed', message: messageOf(error) });
        void finish(1);
      });
    } else if (message.type === 'accounts') {
      // One after the other, so that the last one set is the one that holds.
      last = last.then(async () => {
        const error = await node
          ?.then((it) => it.setAccounts(message.accounts))
          .then(() => undefined, messageOf);
        send({ type: 'accounts', error });
      });
    } else if (message.type === 'connection') {
      const socket = handle as Socket | undefined;
      // Undefined when the client has hung up on the way here.
      if (socket) node?.then((it) => it.server.adopt(socket)).catch(() => socket.destroy());
    } else {
      void finish(0);
    }
  });
  process.on('disconnect', () => void finish(0));
  // The parent decides; Ctrl-C in its terminal is not for us.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
  process.stderr.on('error', () => undefined);

  let finishing = false;
  async function finish(code: number): Promise<void> {
    if (finishing) return;
    finishing = true;
    setTimeout(() => process.exit(code), 3000);
    await node?.then((it) => it.server.stop()).catch(() => undefined);
    process.exit(code);
  }
}

async function start(settings: Settings, log: Logger): Promise<Node> {
  requireUsable(settings.accounts);
  hideInherited();
  const { homes, sandbox } = settings;
  if (sandbox === 'namespaces') copyEtc();
  const server = new LoginServer({ ...settings, log });
  const setAccounts = async (next: readonly Account[]) => {
    requireUsable(next);
    await prepareHomes(sandbox, homes, next);
    await server.setAccounts(next);
  };
  await setAccounts(settings.accounts);
  send({ type: 'ready' });
  return { server, setAccounts };
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

function send(message: FromLoginNode): void {
  if (process.connected) process.send?.(message, () => undefined);
}

function logger(): Logger {
  const at =
    (level: EventLevel) =>
    <Name extends EventName>(event: Name, fields: LogEvents[Name]) =>
      send({ type: 'log', level, event, fields: plainFields(fields) });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Errors do not survive IPC as they are. */
function plainFields<Fields extends object>(fields: Fields): Fields {
  const plain = (value: unknown) =>
    value instanceof Error ? { name: value.name, message: value.message, stack: value.stack } : value;
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, plain(value)])) as Fields;
}
