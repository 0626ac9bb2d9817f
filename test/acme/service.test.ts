/** The whole service with a certificate of its own making: from nothing, over a reload, and with Debian's test authority. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { stringify } from 'yaml';
import { startTestAcme } from '../support/acme.ts';
import { eventually } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { program, runProgram } from '../support/program.ts';

const host = 'gpu.physics.example';

/** Runs `serve` with these settings of ACME. */
async function serve(
  t: TestContext,
  directory: string,
  ports: { platform: number; http: number },
  acme: object,
) {
  const [business, gateway, issuer] = await freePorts(3);
  const file = join(directory, 'andromeda.yaml');
  const url = (port: number | undefined) => ({
    listen: `127.0.0.1:${port}`,
    url: `https://${host}:${port}`,
    tls: 'acme',
  });
  const settings = {
    dataDir: './data',
    platform: url(ports.platform),
    business: url(business),
    gateway: { listen: `127.0.0.1:${gateway}` },
    identity: { embedded: url(issuer) },
    acme: { agreeToTerms: true, ca: 'ca.pem', ...acme },
  };
  writeFileSync(file, stringify(settings));
  const child = spawn(program, ['serve', '--config', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const service = { child, log: '', exited: new Promise((resolve) => child.once('exit', resolve)), file };
  child.stderr.setEncoding('utf8').on('data', (part) => {
    service.log += part;
  });
  return service;
}

const until = (service: { log: string }, event: string, count = 1) =>
  eventually(
    async () => service.log.split(`"event":"${event}"`).length - 1,
    (found) => found >= count,
  );

/** What `/readyz` answers a client who trusts these. */
function readiness(port: number, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, servername: host, ca, path: '/readyz', agent: false }, (response) => {
      response.resume();
      resolve(String(response.statusCode));
    }).on('error', reject);
  });
}

test('from nothing to a service with a certificate; a reload keeps it; `check` and a stop', async (t) => {
  using directory = temporaryDirectory();
  using place = temporaryDirectory();
  await using authority = await startTestAcme(place.path);
  const [platform = 0, http = 0] = await freePorts(2);
  authority.ports = { http, tls: platform };
  authority.fault = 'refuses names';
  writeFileSync(join(directory.path, 'ca.pem'), authority.ca);
  const acme = { directory: authority.directory, listen: `127.0.0.1:${http}` };
  const service = await serve(t, directory.path, { platform, http }, acme);
  await until(service, 'serve.ready');
  await until(service, 'acme.failed');
  assert.match(service.log, /"event":"acme\.waiting".*Nobody can connect over HTTPS until then/);
  await assert.rejects(readiness(platform, authority.root));
  const { out: stdout } = await runProgram('check', '--config', service.file);
  assert.match(
    stdout,
    /^warn +certificate +There is none yet for gpu\.physics\.example\. The service obtains it from 127/m,
  );
  assert.match(
    stdout,
    /^warn +certificate +No certificate could be obtained from .* is not for us\. It is tried again at /m,
  );
  const doctor = await runProgram('doctor', '--config', service.file);
  assert.match(
    doctor.out,
    /^wrong +service +It runs, and nobody can connect .* until it has its certificate\.$/m,
  );
  assert.doesNotMatch(doctor.out, /restart it/);

  authority.fault = 'none';
  // As an operator does who does not want to wait.
  writeFileSync(join(directory.path, 'data/keys/acme.json'), '{}');
  service.child.kill('SIGHUP');
  await until(service, 'acme.obtained');
  assert.equal(await readiness(platform, authority.root), '200');
  const asked = authority.requests.get('new-order');
  service.child.kill('SIGHUP');
  await until(service, 'serve.ready', 3);
  assert.equal(await readiness(platform, authority.root), '200');
  assert.equal(authority.requests.get('new-order'), asked);
  service.child.kill('SIGTERM');
  assert.equal(await service.exited, 0, service.log);
});

test('with Pebble in its strict mode: an order and a renewal', {
  skip: !existsSync('/usr/bin/pebble') && 'there is no pebble',
}, async (t) => {
  using directory = temporaryDirectory();
  const [platform = 0, http = 0, listen, management, dns, control] = await freePorts(6);
  const authority = createAuthority();
  const own = authority.issue('server');
  const write = (name: string, text: string) => {
    writeFileSync(join(directory.path, name), text);
    return join(directory.path, name);
  };
  write('ca.pem', authority.ca);
  const pebble = {
    listenAddress: `127.0.0.1:${listen}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: write('pebble.pem', own.cert),
    privateKey: write('pebble.key', own.key),
    httpPort: http,
    tlsPort: platform,
    ocspResponderURL: '',
    externalAccountBindingRequired: false,
  };
  const start = (program: string, args: string[]) => {
    const child = spawn(program, args, {
      stdio: 'ignore',
      env: { ...process.env, PEBBLE_VA_NOSLEEP: '1' },
    });
    t.after(async () => {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
    });
  };
  const off = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv6', ''];
  start('pebble-challtestsrv', ['-management', `127.0.0.1:${control}`, '-dns01', `127.0.0.1:${dns}`, ...off]);
  start('pebble', [
    '-strict',
    '-config',
    write('pebble.json', JSON.stringify({ pebble })),
    '-dnsserver',
    `127.0.0.1:${dns}`,
  ]);
  const acme = {
    directory: `https://127.0.0.1:${listen}/dir`,
    listen: `127.0.0.1:${http}`,
  };
  await eventually(() => listens(listen), Boolean);
  const service = await serve(t, directory.path, { platform, http }, acme);
  await until(service, 'acme.obtained');
  const root = await new Promise<string>((resolve, reject) => {
    get(`https://127.0.0.1:${management}/roots/0`, { ca: authority.ca, agent: false }, (response) => {
      let text = '';
      response.on('data', (part) => {
        text += part;
      });
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });
  // The certificate is served a moment after the log has it.
  await eventually(
    () => readiness(platform, root),
    (status) => status === '200',
  );
  assert.ok(
    readFileSync(join(directory.path, 'data/keys/acme_certificate.pem'), 'utf8').includes('PRIVATE KEY'),
  );
  // The state without which the certificate counts as one for other names, so that it is due at once.
  writeFileSync(join(directory.path, 'data/keys/acme.json'), '{}');
  service.child.kill('SIGHUP');
  await until(service, 'acme.obtained', 2);
  assert.doesNotMatch(service.log, /"event":"acme\.failed"/);
  service.child.kill('SIGTERM');
  assert.equal(await service.exited, 0, service.log);
});

/** Whether something accepts connections at a port of this machine. */
function listens(port: number | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port ?? 0, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
