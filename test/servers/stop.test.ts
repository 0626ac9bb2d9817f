/** Two servers of the real program behind the documented HAProxy: one of them stops, and cuts no request that it has. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { pickAddresses, ports, proxyPorts } from '../../scripts/campaign/cluster/addresses.ts';
import { proxyText, whyNoProxy } from '../../scripts/campaign/cluster/haproxy.ts';
import { becomes, eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { createPostgres, missingPostgres } from '../support/postgres-server.ts';
import { program } from '../support/program.ts';

const missing = missingPostgres() ?? whyNoProxy();
const slowRequests = 24;

test('none of 24 slow requests through HAProxy is cut when one of two servers stops', {
  skip: missing ?? false,
}, async (t) => {
  using directory = temporaryDirectory();
  await using postgres = await createPostgres();
  const addresses = pickAddresses();
  const { proxy, urls } = addresses;
  const secretsKeyFile = join(directory.path, 'secrets.key');
  writeFileSync(secretsKeyFile, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });

  async function startServer(host: string, name: string) {
    const file = join(directory.path, `${name}.yaml`);
    const listen = (port: number) => `${host}:${port}`;
    const settings = {
      ...{ dataDir: join(directory.path, name), database: postgres.url(), secretsKeyFile },
      server: { name },
      platform: { listen: listen(ports.platform), url: urls.platform },
      business: { listen: listen(ports.business), url: urls.business },
      identity: { embedded: { listen: listen(8082), url: urls.issuer } },
      gateway: { listen: listen(ports.gateway), hostname: proxy, proxyProtocol: 'required' },
      trustedProxies: [proxy],
    };
    writeFileSync(file, stringify(settings));
    const child = spawn(program, ['serve', '--config', file], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    t.after(() => child.kill('SIGKILL'));
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (part) => {
      log += part;
    });
    await becomes(() => log.includes('serve.ready'), true);
    return { child, host, log: () => log };
  }
  const first = await startServer(addresses.servers[0], 'one');
  await startServer(addresses.servers[1], 'two');
  const file = join(directory.path, 'haproxy.cfg');
  writeFileSync(file, proxyText(addresses));
  const haproxy = spawn('haproxy', ['-db', '-f', file], {
    stdio: 'ignore',
    env: { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` },
  });
  t.after(() => haproxy.kill('SIGKILL'));
  const readiness = (url: string) =>
    fetch(`${url}/readyz`).then(
      ({ status }) => status,
      () => 0,
    );
  await becomes(() => readiness(urls.platform), 200);

  // Each has been read by its server when that asks for the rest of it, and ends when it gets that.
  const slow = await Promise.all(
    Array.from({ length: slowRequests }, async () => {
      const asking = request({
        ...{ host: proxy, port: proxyPorts.issuer, path: '/token', method: 'POST', agent: false },
        headers: {
          ...{ 'content-type': 'application/x-www-form-urlencoded', 'content-length': '4' },
          expect: '100-continue',
        },
      });
      const answered = once(asking, 'response') as Promise<[IncomingMessage]>;
      answered.catch(() => {});
      asking.flushHeaders();
      await once(asking, 'continue');
      return { asking, answered };
    }),
  );
  first.child.kill('SIGTERM');
  await becomes(() => readiness(`http://${first.host}:${ports.platform}`), 503);
  // HAProxy sends it no more, and it takes no more.
  await eventually(
    () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(ports.platform, first.host, () => resolve(true)).on('error', () =>
          resolve(false),
        );
        socket.unref().end();
      }),
    (isOpen) => !isOpen,
  );
  for (const { asking } of slow) asking.end('a=b&');
  const statuses = await Promise.all(
    slow.map(({ answered }) =>
      answered.then(
        ([response]) => response.resume().statusCode,
        (error: Error) => error.message,
      ),
    ),
  );
  assert.deepEqual(
    statuses,
    statuses.map(() => 400),
    first.log(),
  );
  const [status] = first.child.exitCode === null ? await once(first.child, 'exit') : [first.child.exitCode];
  assert.equal(status, 0, first.log());
  assert.equal(await readiness(urls.platform), 200);
});
