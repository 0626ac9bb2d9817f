/**
 * What the files of docs/scale are for takes them. That what docs/scale.md says of PostgreSQL works is in scale.full.test.ts, and that
 * Patroni fails over in patroni.full.test.ts.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { readExample } from '../../scripts/campaign/cluster/addresses.ts';
import { whyNoProxy } from '../../scripts/campaign/cluster/haproxy.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/scale.md'), 'utf8');

test('docs/scale.md links to every file in docs/scale', () => {
  const files = readdirSync(join(import.meta.dirname, '../../docs/scale'));
  assert.deepEqual(
    files.filter((name) => !page.includes(`](scale/${name})`)),
    [],
  );
});

/** Of docs/scale/postgresql.conf. */
const settings = [...readExample('postgresql.conf').matchAll(/^(\w+) = (.*)$/gm)].map(
  ([, name = '', value = '']): [string, string] => [name, value.replaceAll("'", '')],
);

test('Patroni gives PostgreSQL the settings of postgresql.conf, but for those that it decides itself', () => {
  const { bootstrap } = parse(readExample('patroni.yaml'));
  const decided = new Set(['wal_level', 'hot_standby', 'max_wal_senders', 'synchronous_standby_names']);
  assert.deepEqual(
    Object.entries(bootstrap.dcs.postgresql.parameters).map(([name, value]) => [name, `${value}`]),
    settings.filter(([name]) => !decided.has(name)),
  );
});

const noProxy = whyNoProxy();

test('HAProxy takes its file', { skip: noProxy ? `not here: ${noProxy}` : false }, () => {
  using directory = temporaryDirectory();
  const certificate = join(directory.path, 'andromeda.pem');
  const { cert, key } = createAuthority().issue('server');
  writeFileSync(certificate, `${cert}${key}`);
  const file = join(directory.path, 'haproxy.cfg');
  writeFileSync(file, readExample('haproxy.cfg').replaceAll('/etc/haproxy/andromeda.pem', certificate));
  const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` };
  execFileSync('haproxy', ['-c', '-q', '-f', file], { env, stdio: 'inherit' });
});

const isKeepalived = spawnSync('/usr/sbin/keepalived', ['--version']).status === 0;
// It asks for an interface that is there, and takes no loopback.
const [link] = Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
  addresses?.some(({ internal }) => !internal) ? [name] : [],
);
const noKeepalived = !isKeepalived ? 'keepalived is not installed' : !link && 'there is only loopback';

test('keepalived takes its file', { skip: noKeepalived }, () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'keepalived.conf');
  writeFileSync(file, readExample('keepalived.conf').replaceAll('eth0', link ?? ''), { mode: 0o644 });
  execFileSync('/usr/sbin/keepalived', ['-t', '-f', file], { stdio: 'pipe' });
});

test("a server's file is a configuration", () => {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'andromeda.yaml');
  const secret = { mode: 0o600 };
  writeFileSync(file, readExample('andromeda.yaml'));
  writeFileSync(
    join(directory.path, 'database.url'),
    'postgres://andromeda:x@10.20.0.21,10.20.0.22/andromeda',
    secret,
  );
  writeFileSync(join(directory.path, 'secrets.key'), `${Buffer.alloc(32, 1).toString('base64')}\n`, secret);
  const config = readConfig(file);
  assert.deepEqual(config.trustedProxies, ['10.20.0.10']);
  assert.equal(config.gateway.proxyProtocol, 'required');
  assert.equal(config.console?.url, 'https://gpu.physics.example');
});

const example = (name: string) => join(import.meta.dirname, '../../docs/scale', name);
const noPatroni = spawnSync('patroni', ['--version']).status !== 0 && 'patroni is not installed';

test('Patroni finds nothing wrong in the documented file but what the machines of the page have', {
  skip: noPatroni,
}, () => {
  const { stdout, stderr } = spawnSync('patroni', ['--validate-config', example('patroni.yaml')], {
    encoding: 'utf8',
  });
  const faults = `${stdout}${stderr}`.split('\n').filter((line) => line !== '');
  // It says so of addresses that this machine does not have; and it does not look under postgresql for pg_hba.
  const expected = /listen 10\.20\.0\.21:\d+ didn't pass|bootstrap\.pg_hba {2}is not defined/;
  assert.deepEqual(
    faults.filter((line) => !expected.test(line)),
    [],
  );
  assert.equal(faults.length, 3);
});
