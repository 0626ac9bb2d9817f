/** What the log says of certificates: at the start, 30, 7 and 1 days before the end, and at the end. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { createLogger } from '../../src/lib/log.ts';
import { watchCertificates } from '../../src/service/compose/certificates.ts';
import { readConfig } from '../../src/service/config/index.ts';
import { becomes } from '../support/app.ts';
import { createAuthority } from '../support/certificate.ts';
import { temporaryDirectory } from '../support/directory.ts';

const dayMs = 86_400_000;

/** A configuration whose Platform API has a certificate for so many days. */
function configure(directory: string, days: number) {
  const { cert, key } = createAuthority().issue('server', days * dayMs);
  writeFileSync(join(directory, 'chain.pem'), cert);
  writeFileSync(join(directory, 'key.pem'), key);
  const file = join(directory, 'andromeda.yaml');
  writeFileSync(file, stringify({ platform: { tls: { cert: 'chain.pem', key: 'key.pem' } } }));
  return readConfig(file);
}

test('a certificate’s end is said 30, 7 and 1 days before, at the end, and once each', async () => {
  using directory = temporaryDirectory();
  const config = configure(directory.path, 40);
  const lines: string[] = [];
  const log = createLogger('info', (line) => {
    const { level, event, setting, message } = JSON.parse(line);
    const text = message.replaceAll(directory.path, '').replace(/ on [\d-]+/, '');
    lines.push(`${level} ${event} ${setting} ${text}`);
  });
  let days = 0;
  let looks = 0;
  const now = () => {
    looks += 1;
    return Date.now() + days * dayMs;
  };
  const stop = watchCertificates(config, log, now, 1);
  const after = async (count: number) => {
    days = count;
    const before = looks;
    await becomes(() => looks > before + 20, true);
    return lines.splice(0);
  };
  assert.deepEqual(await after(9.5), []);
  const ending = (span: string) => [
    `warn certificate.ending platform.tls /chain.pem ends, in ${span}. Renew it, and reload the service.`,
  ];
  assert.deepEqual(await after(10.5), ending('29 days'));
  assert.deepEqual(await after(20), []);
  assert.deepEqual(await after(33.5), ending('6 days'));
  assert.deepEqual(await after(39.5), ending('less than a day'));
  assert.deepEqual(await after(41), [
    'error certificate.ended platform.tls /chain.pem ended. Renew it, and reload the service.',
  ]);
  assert.deepEqual(await after(50), []);
  stop();
});

test('one that has ended is said at the start, and does not keep the service from starting', () => {
  using directory = temporaryDirectory();
  const lines: string[] = [];
  const log = createLogger('info', (line) => lines.push(line));
  watchCertificates(configure(directory.path, -0.5), log, Date.now)();
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /"event":"certificate\.ended"/);
});

test('one that cannot be used does keep it from starting, and the file is named', () => {
  using directory = temporaryDirectory();
  const log = createLogger('silent');
  const { platform, ...config } = configure(directory.path, 9);
  const tls = platform.tls && { ...platform.tls, key: Buffer.from('no key') };
  assert.throws(() => watchCertificates({ ...config, platform: { ...platform, tls } }, log, Date.now), {
    code: 'invalid_request',
    message: `platform.tls: ${directory.path}/key.pem holds no private key in PEM that can be read without a passphrase.`,
  });
});
