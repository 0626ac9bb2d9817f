/** Certificates that the service obtains by itself, from an authority that really asks: alone, and with others of its names. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { get } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect } from 'node:tls';
import { stringify } from 'yaml';
import { createLogger } from '../../src/lib/log.ts';
import { type Acme, type AnsweredChallenge, createAcme } from '../../src/service/certificates/index.ts';
import {
  type CertificateOfAll,
  renewalAt,
  retryAfter,
  takeOrOrder,
} from '../../src/service/certificates/renewal.ts';
import { listenHere } from '../http/support.ts';
import { startTestAcme, type TestAcme } from '../support/acme.ts';
import { becomes, eventually } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { program, runProgram } from '../support/program.ts';

const dayMs = 86_400_000;
const hosts = ['gpu.physics.example', 'login.physics.example'];

interface Service {
  acme: Acme;
  port: number;
  httpPort: number;
  dataDir: string;
  lines: Record<string, unknown>[];
  /** Days that have passed. */
  later: { days: number };
  /** As a new process on the same data. */
  restart(): void;
}

/** The authority, an HTTPS listener and one for HTTP-01. */
async function serve(
  t: TestContext,
  fault: TestAcme['fault'] = 'none',
): Promise<{ authority: TestAcme; service: Service }> {
  const place = temporaryDirectory();
  const authority = await startTestAcme(place.path);
  authority.fault = fault;
  const service = await serveFrom(t, authority, place);
  t.after(() => authority[Symbol.asyncDispose]());
  authority.ports = { http: service.httpPort, tls: service.port };
  return { authority, service };
}

async function serveFrom(
  t: TestContext,
  { directory, ca }: Pick<TestAcme, 'directory' | 'ca'>,
  place: ReturnType<typeof temporaryDirectory>,
): Promise<Service> {
  const later = { days: 0 };
  const lines: Record<string, unknown>[] = [];
  const make = () =>
    createAcme({
      directory,
      authority: ca,
      email: 'ops@physics.example',
      hosts,
      externalAccount: undefined,
      dataDir: place.path,
      origins: ['https://gpu.physics.example:8443', 'https://login.physics.example'],
      log: createLogger('info', (line) => lines.push(JSON.parse(line))),
      now: () => Date.now() + later.days * dayMs,
      retryMs: () => 100,
    });
  const service = { acme: make(), dataDir: place.path, lines, later } as unknown as Service;
  const live = { attach: (server: Parameters<Acme['tls']['attach']>[0]) => service.acme.tls.attach(server) };
  const https = await listenHere((_, response) => response.end('served'), { tls: live });
  const http = await listenHere((...args) => service.acme.handler(...args));
  t.after(async () => {
    // First, for it writes into the directory: in these days of its own, a new certificate is due again at once.
    service.acme.stop();
    await Promise.all([https.stop(0), http.stop(0)]);
    place[Symbol.dispose]();
  });
  const restart = () => {
    service.acme.stop();
    service.acme = make();
  };
  return Object.assign(service, { port: https.port, httpPort: http.port, restart });
}

/** What the listener answers a client who trusts the authority. */
function ask({ port }: Service, ca: string, servername = 'gpu.physics.example'): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, servername, ca, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });
}

const events = ({ lines }: Service, event: string) => lines.filter((line) => line['event'] === event);
const until = (service: Service, event: string, count = 1) =>
  eventually(
    async () => events(service, event).length,
    (found) => found >= count,
  );

test('without a certificate no connection is served; then it is obtained, used and renewed', async (t) => {
  const { authority, service } = await serve(t);
  assert.match(service.acme.obstacle ?? '', /There is no TLS certificate yet for gpu\.physics/);
  assert.equal(events(service, 'acme.waiting').length, 1);
  await assert.rejects(ask(service, authority.root));
  service.acme.begin();
  await until(service, 'acme.obtained');
  assert.equal(service.acme.obstacle, undefined);
  for (const host of hosts) assert.equal(await ask(service, authority.root, host), 'served');
  for (const name of ['acme_certificate.pem', 'acme_account.pem', 'acme.json'])
    assert.equal(statSync(join(service.dataDir, 'keys', name)).mode & 0o777, 0o600);
  const file = join(service.dataDir, 'keys/acme_certificate.pem');
  const serial = () => new X509Certificate(readFileSync(file)).serialNumber;
  const first = serial();

  service.later.days = 59;
  service.acme.begin();
  await new Promise((done) => setTimeout(done, 100));
  assert.equal(serial(), first, 'a third of its life is left');
  service.later.days = 61;
  service.acme.begin();
  await until(service, 'acme.obtained', 2);
  assert.notEqual(serial(), first);
  assert.equal(await served(service), serial(), 'it is used without a new start');
});

/** The serial number of the certificate that a client gets. */
async function served({ port }: Service): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, servername: hosts[0], rejectUnauthorized: false });
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

test('HTTP-01: only challenges are answered; known names are sent to HTTPS once it can be used', async (t) => {
  const { service } = await serve(t);
  const at = (path: string, host: string, method = 'GET') => {
    return new Promise<string>((resolve, reject) => {
      request({ host: '127.0.0.1', port: service.httpPort, path, method, headers: { host } }, (response) => {
        response.resume();
        resolve(`${response.statusCode} ${response.headers.location ?? ''}`.trim());
      })
        .on('error', reject)
        .end();
    });
  };
  assert.equal(await at('/me', 'gpu.physics.example'), '503');
  service.acme.begin();
  await until(service, 'acme.obtained');
  for (const [path, host, answer] of [
    ['/me?a=b', 'gpu.physics.example:80', '308 https://gpu.physics.example:8443/me?a=b'],
    ['/me', 'LOGIN.physics.example', '308 https://login.physics.example/me'],
    ['//evil.example/', 'login.physics.example', '308 https://login.physics.example//evil.example/'],
    ['/me', 'evil.example', '404'],
    ['/.well-known/acme-challenge/other', 'gpu.physics.example', '404'],
  ] as const) {
    assert.equal(await at(path, host), answer);
  }
  assert.equal(await at('/me', 'gpu.physics.example', 'POST'), '405');
});

for (const [fault, words] of [
  [
    'busy',
    /No certificate could be obtained from 127\.0\.0\.1:\d+: Attempting to read ACME directory returned error 503/,
  ],
  ['rate limit', /too many certificates already issued\. It is tried again at .*There is none yet/],
  ['refuses names', /gpu\.physics\.example is not for us/],
] as const)
  test(`an authority with the fault “${fault}” is reported in words and tried again`, async (t) => {
    const { authority, service } = await serve(t, fault);
    service.acme.begin();
    await until(service, 'acme.failed');
    const [line] = events(service, 'acme.failed');
    assert.match(String(line?.['message']), words);
    const waitMs = Date.parse(String(line?.['retryAt'])) - Date.now();
    if (fault === 'rate limit') assert.ok(waitMs > 3_500_000, 'as it was asked to');
    if (fault === 'busy') assert.ok(waitMs > 20_000);
    if (fault !== 'refuses names') {
      // A process that crashes and starts again does not ask again.
      const asked = authority.requests.get('directory');
      service.restart();
      service.acme.begin();
      await new Promise((done) => setTimeout(done, 300));
      assert.equal(authority.requests.get('directory'), asked);
      return;
    }
    authority.fault = 'none';
    await until(service, 'acme.obtained');
  });

test('a challenge that is not answered is reported with what the authority saw', async (t) => {
  const { authority, service } = await serve(t);
  const { http } = authority.ports;
  authority.ports.http = authority.ports.tls;
  service.acme.begin();
  await until(service, 'acme.failed');
  assert.match(
    String(events(service, 'acme.failed')[0]?.['message']),
    /the authority did not accept gpu\.physics\.example: gpu\.physics\.example: /,
  );
  authority.ports.http = http;
  await until(service, 'acme.obtained');
});

test('a certificate that is there is used while the authority is down or never answers, also after a new start', async (t) => {
  const { authority, service } = await serve(t);
  service.acme.begin();
  await until(service, 'acme.obtained');
  authority.fault = 'silent';
  service.later.days = 70;
  service.restart();
  assert.equal(service.acme.obstacle, undefined);
  service.acme.begin();
  await eventually(
    async () => authority.requests.get('directory'),
    (count = 0) => count > 1,
  );
  assert.equal(await ask(service, authority.root), 'served');
  service.acme.stop();
  assert.equal(events(service, 'acme.failed').length, 0, 'a stop is no failure');

  // One that is damaged is obtained anew.
  authority.fault = 'none';
  writeFileSync(join(service.dataDir, 'keys/acme_certificate.pem'), 'half');
  service.restart();
  assert.match(service.acme.obstacle ?? '', /no TLS certificate yet/);
  service.acme.begin();
  await until(service, 'acme.obtained', 2);
});

test('with Pebble in its strict mode: an order and a renewal', {
  skip: !existsSync('/usr/bin/pebble') && 'there is no pebble',
}, async (t) => {
  const place = temporaryDirectory();
  const [listen, management, dns, control] = await freePorts(4);
  const { ca, issue } = createAuthority();
  const service = await serveFrom(t, { directory: `https://127.0.0.1:${listen}/dir`, ca }, place);
  const { cert, key } = issue('server');
  const write = (name: string, text: string) => {
    writeFileSync(join(place.path, name), text);
    return join(place.path, name);
  };
  const pebble = {
    listenAddress: `127.0.0.1:${listen}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: write('pebble.pem', cert),
    privateKey: write('pebble.key', key),
    httpPort: service.httpPort,
    tlsPort: service.port,
    ocspResponderURL: '',
    externalAccountBindingRequired: false,
  };
  const start = (program: string, args: string[]) => {
    const child = spawn(program, args, { stdio: 'ignore', env: { ...process.env, PEBBLE_VA_NOSLEEP: '1' } });
    const gone = new Promise((resolve) => child.once('exit', resolve));
    t.after(async () => {
      child.kill('SIGKILL');
      await gone;
    });
  };
  const off = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv6', ''];
  start('pebble-challtestsrv', ['-management', `127.0.0.1:${control}`, '-dns01', `127.0.0.1:${dns}`, ...off]);
  const config = write('pebble.json', JSON.stringify({ pebble }));
  start('pebble', ['-strict', '-config', config, '-dnsserver', `127.0.0.1:${dns}`]);
  const fetchRoot = () =>
    new Promise<string>((resolve) => {
      get(`https://127.0.0.1:${management}/roots/0`, { ca, agent: false }, async (response) => {
        resolve(Buffer.concat(await response.toArray()).toString());
      }).on('error', () => resolve(''));
    });
  const root = await eventually(fetchRoot, Boolean);
  service.acme.begin();
  await until(service, 'acme.obtained');
  assert.equal(await ask(service, root), 'served');
  // The state without which the certificate counts as one for other names, so that it is due at once.
  writeFileSync(join(service.dataDir, 'keys/acme.json'), '{}');
  service.acme.begin();
  await until(service, 'acme.obtained', 2);
  assert.equal(events(service, 'acme.failed').length, 0);
});

const host = 'gpu.physics.example';

const untilLogged = (service: { log: string }, event: string, count = 1) =>
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
  const [platform = 0, http = 0, business = 0, gateway = 0, issuer = 0] = await freePorts(5);
  authority.ports = { http, tls: platform };
  authority.fault = 'refuses names';
  writeFileSync(join(directory.path, 'ca.pem'), authority.ca);
  const url = (port: number) => ({
    ...{ listen: `127.0.0.1:${port}`, tls: 'acme' },
    url: `https://${host}:${port}`,
  });
  const settings = {
    dataDir: './data',
    platform: url(platform),
    business: url(business),
    gateway: { listen: `127.0.0.1:${gateway}` },
    identity: { embedded: url(issuer) },
    acme: {
      ...{ agreeToTerms: true, ca: 'ca.pem', directory: authority.directory, listen: `127.0.0.1:${http}` },
    },
  };
  const file = join(directory.path, 'andromeda.yaml');
  writeFileSync(file, stringify(settings));
  const child = spawn(program, ['serve', '--config', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const service = { child, log: '', exited: new Promise((resolve) => child.once('exit', resolve)), file };
  child.stderr.setEncoding('utf8').on('data', (part) => {
    service.log += part;
  });
  await untilLogged(service, 'serve.ready');
  await untilLogged(service, 'acme.failed');
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
  await untilLogged(service, 'acme.obtained');
  assert.equal(await readiness(platform, authority.root), '200');
  const asked = authority.requests.get('new-order');
  service.child.kill('SIGHUP');
  await untilLogged(service, 'serve.ready', 3);
  assert.equal(await readiness(platform, authority.root), '200');
  assert.equal(authority.requests.get('new-order'), asked);
  service.child.kill('SIGTERM');
  assert.equal(await service.exited, 0, service.log);
});

test('a server answers the question that another one is asked about a name that both have', async () => {
  using directory = temporaryDirectory();
  let hear: (challenge: AnsweredChallenge) => void = () => {};
  const acme = createAcme({
    directory: 'https://127.0.0.1:1/directory',
    email: undefined,
    hosts: ['a.example'],
    authority: undefined,
    externalAccount: undefined,
    dataDir: directory.path,
    origins: ['https://a.example'],
    log: createLogger('silent'),
    now: Date.now,
    others: {
      announce: async () => {},
      hear(listener) {
        hear = listener;
        return () => {};
      },
      certificate: { find: async () => undefined, ordering: () => undefined },
    },
  });
  const server = createServer(acme.handler);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  try {
    const { port } = server.address() as AddressInfo;
    const ask = async (token: string) => {
      const path = `/.well-known/acme-challenge/${token}`;
      const response = await fetch(`http://127.0.0.1:${port}${path}`);
      return `${response.status} ${await response.text()}`;
    };
    hear({ token: 'ours', host: 'a.example', keyAuthorization: 'ours.thumbprint' });
    hear({ token: 'other', host: 'b.example', keyAuthorization: 'other.thumbprint' });
    await becomes(() => ask('ours'), '200 ours.thumbprint');
    assert.match(await ask('other'), /^404 /, 'a name that this server does not have');
  } finally {
    acme.stop();
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
});

test('one server orders, the others take that; another name, and one that is due, is ordered anew', async () => {
  const authority = createAuthority();
  let kept: Awaited<ReturnType<CertificateOfAll['find']>>;
  const all = (orders: boolean): CertificateOfAll => ({
    find: async () => kept,
    ordering() {
      if (!orders) return undefined;
      return {
        account: (make) => make(),
        async keep(certificate) {
          kept = certificate;
        },
      };
    },
  });
  let orders = 0;
  let days = 0;
  const obtain = (hosts: string[], mayOrder = true, signal = new AbortController().signal) => {
    const options = { directory: 'https://ca.example/dir', hosts, now: () => Date.now() + days * dayMs };
    const order = async () => {
      orders += 1;
      const { cert, key } = authority.issue('server');
      return Buffer.from(`${cert}${key}`);
    };
    return takeOrOrder(all(mayOrder), options, order, signal);
  };
  const over = AbortSignal.abort();
  await assert.rejects(obtain(['a.example'], false, over), /the server that orders it has not obtained it/);
  const first = await obtain(['a.example']);
  assert.deepEqual(await obtain(['a.example'], false, over), first);
  assert.deepEqual(await obtain(['a.example']), first);
  assert.equal(orders, 1);
  assert.notDeepEqual(await obtain(['b.example']), first);
  assert.equal(orders, 2);
  days = 1;
  await obtain(['b.example']);
  assert.equal(orders, 3);
});

test('renewed at two thirds of the life, spread over a hundredth', () => {
  const life = { beginsAt: 0, endsAt: 90 };
  assert.equal(renewalAt(life, 0), 60);
  assert.equal(renewalAt(life, 1), 60.9);
});

test('failures wait a minute, then twice as long each, six hours at most; and as long as the authority asks, a week at most', () => {
  assert.equal(retryAfter(1, 1), 64_000);
  assert.equal(retryAfter(2, 1), 128_000);
  assert.equal(retryAfter(1, 0), 32_000);
  assert.equal(retryAfter(1000, 1), 6 * 3_600_000);
  assert.equal(retryAfter(1, 1, 3_600_000), 3_600_000);
  assert.equal(retryAfter(1, 1, Number.MAX_VALUE), 7 * 24 * 3_600_000);
});
