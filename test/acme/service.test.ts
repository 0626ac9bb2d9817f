/** The whole service with a certificate of its own making: from nothing, over a reload. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { startTestAcme } from '../support/acme.ts';
import { eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { program, runProgram } from '../support/program.ts';

const host = 'gpu.physics.example';

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
