/** `systemctl reload`, as SIGHUP: the service starts anew in its own process, and the gateway's process goes on. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { gatewaysOf, isAlive } from '../gateway/process/lab.ts';
import { eventually } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';

test('SIGHUP: new settings, the same process number, the same gateway process; a wrong file changes nothing', {
  timeout: 120_000,
}, async (t) => {
  using directory = temporaryDirectory();
  const [platform, business, gateway, issuer, other, metrics] = await freePorts(6);
  const file = join(directory.path, 'andromeda.yaml');
  const write = (businessPort: number | undefined, more: object = {}) =>
    writeFileSync(
      file,
      stringify({
        platform: { listen: `127.0.0.1:${platform}` },
        business: { listen: `127.0.0.1:${businessPort}` },
        gateway: { listen: `127.0.0.1:${gateway}` },
        identity: { embedded: { listen: `127.0.0.1:${issuer}` } },
        metrics: { listen: `127.0.0.1:${metrics}` },
        ...more,
      }),
    );
  write(business);
  const child = spawn('scripts/andromeda', ['serve', '--config', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (part) => {
    log += part;
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const count = (event: string) => log.split(`"event":"${event}"`).length - 1;
  const until = (event: string, times: number) =>
    eventually(
      async () => count(event),
      (found) => found === times,
      30_000,
    );
  const isServed = (port: number | undefined) =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await until('serve.ready', 1);
  const gateways = gatewaysOf(directory.path);
  assert.equal(gateways.length, 1);
  const scrape = await fetch(`http://127.0.0.1:${metrics}/metrics`);
  assert.match(await scrape.text(), /^andromeda_gateway_sessions 0$/m);

  child.kill('SIGUSR1');
  writeFileSync(file, 'sink: {}');
  child.kill('SIGHUP');
  await until('serve.reload.refused', 1);
  assert.match(log, /Not reloaded: .*andromeda\.yaml: sink is not a setting/);
  assert.ok(await isServed(business));
  const { cert } = createAuthority().issue('server');
  writeFileSync(join(directory.path, 'chain.pem'), cert);
  writeFileSync(join(directory.path, 'key.pem'), createAuthority().issue('server').key);
  const tls = { cert: 'chain.pem', key: 'key.pem' };
  write(business, { platform: { listen: `127.0.0.1:${platform}`, tls } });
  child.kill('SIGHUP');
  await until('serve.reload.refused', 2);
  assert.match(
    log,
    /Not reloaded: platform\.tls: The key in .*key\.pem is not that of the first certificate/,
  );
  assert.ok(await isServed(business));

  const backups = join(directory.path, 'backups');
  mkdirSync(backups);
  write(other, {
    gateway: { listen: `127.0.0.1:${gateway}`, limits: { sessionsPerUser: 3 } },
    backup: { to: backups },
  });
  child.kill('SIGHUP');
  await until('serve.ready', 2);
  assert.deepEqual([await isServed(business), await isServed(other)], [false, true]);
  assert.deepEqual(gatewaysOf(directory.path), gateways, 'sessions would go on');
  assert.equal(count('gateway.started'), 1);
  assert.doesNotMatch(log, /Debugger/);

  await until('backup.made', 1);
  assert.equal(readdirSync(backups).length, 1);

  for (let n = 0; n < 20; n += 1) child.kill('SIGHUP');
  await eventually(
    async () => count('serve.ready'),
    (found) => found >= 3,
    30_000,
  );
  child.kill('SIGTERM');
  assert.equal(await exited, 0, log);
  assert.deepEqual(gateways.filter(isAlive), []);
});
