/** What systemd is told: that the service is ready, alive and stopping; and that it is not told so when that is not so. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '../../src/lib/log.ts';
import { feedWatchdog, startSupervision } from '../../src/service/host/unit/supervision.ts';
import { becomes, eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { heard } from '../support/heard.ts';
import { serve, writeSettings } from '../support/service-process.ts';
import { openTestStore } from '../support/store.ts';

const missing = ['/usr/bin/python3', '/usr/bin/systemd-notify'].filter((path) => !existsSync(path));
const skip = missing.length > 0 && `not installed: ${missing.join(', ')}`;

/** Stands for systemd: prints what it is sent, and closes the descriptors that come with it, for which a sender waits. */
const receiver = `
import os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
    s.bind(sys.argv[1])
    print("listening", flush=True)
    while True:
        data, fds, _, _ = socket.recv_fds(s, 4096, 4)
        for fd in fds: os.close(fd)
        print(data.decode(), flush=True)
`;

async function startReceiver(t: TestContext) {
  const directory = temporaryDirectory();
  t.after(() => directory[Symbol.dispose]());
  const socket = join(directory.path, 'notify');
  const child = spawn('/usr/bin/python3', ['-c', receiver, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const text = heard(child.stdout);
  const lines = () =>
    text()
      .split('\n')
      .filter((line) => /^[A-Z]+=/.test(line) && line !== 'BARRIER=1');
  await becomes(() => text().includes('listening'), true);
  return { socket, lines };
}

test('systemd is notified that the service is ready when it serves, that it is alive, and that it stops', {
  skip,
}, async (t) => {
  const { socket, lines } = await startReceiver(t);
  using directory = temporaryDirectory();
  const { file, platform, settings, write } = await writeSettings(directory.path);
  write({ gateway: { ...settings.gateway, processes: 0 } });
  const env = { ...process.env, NOTIFY_SOCKET: socket, WATCHDOG_USEC: '1500000' };
  await using service = serve(file, env);
  const heard = (count: number) =>
    eventually(
      async () => lines(),
      (now) => now.length >= count,
    );
  const [first, ...others] = await heard(3);
  assert.equal(first, 'READY=1');
  assert.deepEqual(new Set(others), new Set(['WATCHDOG=1']));
  assert.equal((await fetch(`http://127.0.0.1:${platform}/readyz`)).status, 200);

  // An event loop that does not turn is not said to be alive.
  service.child.kill('SIGSTOP');
  let before = 0;
  const isQuiet = async () => {
    before = lines().length;
    await sleep(2_000);
    return lines().length === before;
  };
  // What was on its way by then may come late.
  await eventually(isQuiet, Boolean);
  service.child.kill('SIGCONT');
  await heard(before + 1);

  assert.equal(await service.stop(), 0, service.log());
  await becomes(() => lines().includes('STOPPING=1'), true);
  for (const line of service.log().split('\n').filter(Boolean)) JSON.parse(line);
  assert.equal(service.events('serve.stopped').length, 1);
});

test('a check that hangs is not fed to the watchdog, and one that fails is', async () => {
  let fed = 0;
  let check = () => Promise.reject(new Error('the disk is full'));
  const timer = feedWatchdog(
    () => fed++,
    () => check(),
    10,
  );
  await becomes(() => fed > 2, true);
  const hanging = Promise.withResolvers<never>();
  check = () => hanging.promise;
  await sleep(50);
  const before = fed;
  await sleep(200);
  assert.equal(fed, before);
  hanging.reject(new Error('at last'));
  await becomes(() => fed > before, true);
  clearInterval(timer);
});

test('the first sign of life does not wait for the interval to pass', async () => {
  const fed = Promise.withResolvers<void>();
  const timer = feedWatchdog(fed.resolve, async () => {}, 3_600_000);
  await fed.promise;
  clearInterval(timer);
});

test('without a NOTIFY_SOCKET nothing is started; where it cannot be notified, the log says so once', async (t) => {
  await using opened = await openTestStore();
  const lines: string[] = [];
  const log = createLogger('info', (line) => lines.push(line));
  startSupervision(() => opened.store, log, {}).stopping();
  const env = { PATH: '/nowhere', NOTIFY_SOCKET: '/nowhere', WATCHDOG_USEC: '60000' };
  const supervision = startSupervision(() => opened.store, log, env);
  t.after(() => supervision.stopping());
  await becomes(() => lines.length > 0, true);
  await sleep(300);
  assert.equal(lines.length, 1);
  assert.match(
    lines[0] ?? '',
    /"event":"serve\.notify\.failed".*systemd cannot be told that the service is alive: systemd-notify ended with status/,
  );
});
