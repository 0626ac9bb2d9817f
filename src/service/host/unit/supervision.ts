/**
 * Notifications for systemd (sd_notify(3)): ready, alive, stopping. Node has no Unix datagram sockets, so
 * systemd-notify(1) sends them, started by a shell that reads lines: starting a program from a process as large as
 * the service blocks the event loop.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Logger } from '../../../lib/log.ts';
import type { Store } from '../../../store/engine/index.ts';

export interface Supervision {
  stopping(): void;
}

const script = 'while read -r line; do systemd-notify "$line" || exit; done';
const notificationsPerLimit = 3;

/**
 * Notifies systemd that the service is ready, and from then on that it is alive. `store`: the one that must answer;
 * undefined between two services. Does nothing where no systemd started it (no $NOTIFY_SOCKET).
 */
export function startSupervision(
  store: () => Store | undefined,
  log: Logger,
  env = process.env,
): Supervision {
  if (!env['NOTIFY_SOCKET']) return { stopping() {} };
  const notifier = createNotifier(env, log);
  notifier.send('READY=1');
  const limitMs = Number(env['WATCHDOG_USEC'] ?? 0) / 1000;
  const feeding =
    limitMs > 0
      ? feedWatchdog(
          () => notifier.send('WATCHDOG=1'),
          async () => queryDatabase(store()),
          limitMs / notificationsPerLimit,
        )
      : undefined;
  return {
    stopping() {
      clearInterval(feeding);
      notifier.send('STOPPING=1');
      notifier.end();
    },
  };
}

/**
 * Calls `feed` now and at intervals, each time after `check` has ended. A check that hangs stops that, and so does a blocked
 * event loop. A failed check does not: /readyz reports it, and a restart would not fix a full disk. Returns its timer.
 */
export function feedWatchdog(
  feed: () => void,
  check: () => Promise<void>,
  intervalMs: number,
): NodeJS.Timeout {
  let isWaiting = false;
  const attempt = async () => {
    if (isWaiting) return;
    isWaiting = true;
    await check().catch(() => {});
    isWaiting = false;
    feed();
  };
  void attempt();
  return setInterval(() => void attempt(), intervalMs).unref();
}

/** Resolves when the connections that read and write have both answered. Writes nothing. */
async function queryDatabase(store: Store | undefined): Promise<void> {
  if (!store) return;
  const query = (db: Store['read']) => db.selectFrom('counters').select('name').limit(1).execute();
  await query(store.read);
  await store.write(async ({ db }) => void (await query(db)), { flush: false });
}

function createNotifier(env: NodeJS.ProcessEnv, log: Logger) {
  let shell: ChildProcess | undefined;
  let hasFailed = false;
  const start = () => {
    const started = spawn('/bin/sh', ['-c', script], {
      stdio: ['pipe', 'ignore', 'ignore'],
      env: { PATH: env['PATH'] ?? '/usr/bin:/bin', NOTIFY_SOCKET: env['NOTIFY_SOCKET'] },
    });
    const failed = (reason: string) => {
      if (shell !== started) return;
      shell = undefined;
      const message = `systemd cannot be told that the service is alive: systemd-notify ${reason}.`;
      if (!hasFailed) log.error('serve.notify.failed', { message });
      hasFailed = true;
    };
    started.on('error', (error) => failed(error.message));
    started.on('exit', (status, signal) => failed(`ended with ${signal ?? `status ${status}`}`));
    started.stdin?.on('error', () => {});
    return started;
  };
  return {
    send(line: string) {
      shell ??= start();
      shell.stdin?.write(`${line}\n`);
    },
    end() {
      const ending = shell;
      shell = undefined;
      ending?.stdin?.end();
    },
  };
}
