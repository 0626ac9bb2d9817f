/** Entry of the login node's process: gets its settings over IPC from the parent, the server, and exits with it. */
import type { Socket } from 'node:net';
import { messageOf } from '../../../lib/error-message.ts';
import { type EventLevel, type EventName, type LogEvents, type Logger, readable } from '../../../lib/log.ts';
import { copyEtc } from './homes.ts';
import type { FromLoginNode, StartSettings, ToLoginNode } from './messages.ts';
import { hideInherited } from './running.ts';
import { LoginServer } from './server.ts';

serveLoginNode();

/** Serves until a `stop` message or until the parent process ends, for any reason. */
function serveLoginNode(): void {
  process.title = 'andromeda login node';
  const log = logger();
  let server: Promise<LoginServer> | undefined;
  let last: Promise<void> = Promise.resolve();
  // Sessions must not inherit root's supplementary groups.
  if (process.getuid?.() === 0) process.setgroups?.([]);

  process.on('uncaughtException', (error) => {
    log.error('login_node_crashed', { error });
    void finish(1);
  });
  process.on('message', (message: ToLoginNode, handle: unknown) => {
    if (message.type === 'start') {
      server = start(message.settings, log);
      server.catch((error: unknown) => {
        send({ type: 'failed', message: messageOf(error) });
        void finish(1);
      });
    } else if (message.type === 'accounts') {
      // In sequence, so that the newest accounts win.
      last = last.then(async () => {
        const error = await server
          ?.then((it) => it.setAccounts(message.accounts))
          .then(() => undefined, messageOf);
        send({ type: 'accounts', error });
      });
    } else if (message.type === 'connection') {
      const socket = handle as Socket | undefined;
      // Undefined if the client disconnected meanwhile.
      if (socket)
        server?.then((it) => it.adopt(socket, message.authorizedKeys)).catch(() => socket.destroy());
    } else {
      void finish(0);
    }
  });
  process.on('disconnect', () => void finish(0));
  // Ignored: only the parent ends this process, and Ctrl-C in its terminal is not meant for it.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
  process.stderr.on('error', () => undefined);

  let finishing = false;
  async function finish(code: number): Promise<void> {
    if (finishing) return;
    finishing = true;
    setTimeout(() => process.exit(code), 3000);
    await server?.then((it) => it.stop()).catch(() => undefined);
    process.exit(code);
  }
}

async function start({ accounts, ...settings }: StartSettings, log: Logger): Promise<LoginServer> {
  hideInherited();
  if (settings.sandbox === 'namespaces') copyEtc();
  const server = new LoginServer({ ...settings, log });
  await server.setAccounts(accounts);
  send({ type: 'ready' });
  return server;
}

function send(message: FromLoginNode): void {
  if (process.connected) process.send?.(message, () => undefined);
}

function logger(): Logger {
  const at =
    (level: EventLevel) =>
    <Name extends EventName>(event: Name, fields: LogEvents[Name]) =>
      // Error objects lose their fields over IPC.
      send({ type: 'log', level, event, fields: readable(fields) as LogEvents[Name] });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
