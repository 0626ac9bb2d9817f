/** What docs/scale.md shows of files is what the files say, and what they are for takes them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readExample } from '../../scripts/campaign/cluster/addresses.ts';
import { whyNoProxy } from '../../scripts/campaign/cluster/haproxy.ts';
import { readConfig } from '../../src/config/index.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/scale.md'), 'utf8');

for (const name of ['haproxy.cfg', 'postgresql.conf', 'andromeda.yaml'])
  test(`${name} stands on the page as it is`, () => {
    const block = readExample(name)
      .trimEnd()
      .replace(/^(?=.)/gm, '    ');
    assert.ok(page.includes(`\n\n${block}\n\n`), `docs/scale.md has another text than docs/scale/${name}`);
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
