/** What a browser answers for a new passkey, as it comes from someone who wants the service to fetch something. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifyNew } from '../../../src/api/identity/issuer/account/second-factor.ts';
import { temporaryDirectory } from '../../support/directory.ts';

const party = { id: 'login.example', origin: 'https://login.example' };

/** CBOR of what an attestation is made of (RFC 8949, 3). */
function cbor(value: string | number | Buffer | readonly unknown[] | ReadonlyMap<unknown, unknown>): Buffer {
  const head = (major: number, size: number) => {
    const [short, byte, bytes] = [major << 5, 24, 25];
    if (size < byte) return Buffer.from([short | size]);
    return Buffer.from(size < 256 ? [short | byte, size] : [short | bytes, size >> 8, size & 0xff]);
  };
  const all = (items: Iterable<unknown>) => Buffer.concat([...items].map((one) => cbor(one as string)));
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string') return Buffer.concat([head(3, value.length), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  if (value instanceof Map) return Buffer.concat([head(5, value.size), all([...value].flat(1))]);
  const items = value as readonly unknown[];
  return Buffer.concat([head(4, items.length), all(items)]);
}

/** A certificate that says where to ask whether it was revoked. */
function certificate(crl: string): Buffer {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'cert.der');
  const more = ['-subj', '/CN=any', '-days', '2', '-addext', `crlDistributionPoints=URI:${crl}`];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', '/dev/null'];
  execFileSync('openssl', ['req', '-x509', ...key, ...more, '-outform', 'DER', '-out', file], {
    stdio: 'ignore',
  });
  return readFileSync(file);
}

/** What a browser would answer with such an attestation, in Apple's format. */
function answer(challenge: string, x5c: readonly Buffer[]): string {
  const id = randomBytes(16);
  const point = () => randomBytes(32);
  const key = cbor(
    new Map<number, number | Buffer>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, point()],
      [-3, point()],
    ]),
  );
  const host = createHash('sha256').update(party.id).digest();
  const data = Buffer.concat([
    host,
    Buffer.from([0x45, 0, 0, 0, 1]),
    Buffer.alloc(16),
    Buffer.from([0, 16]),
    id,
    key,
  ]);
  const object = cbor(
    new Map<string, unknown>([
      ['fmt', 'apple'],
      ['attStmt', new Map([['x5c', x5c]])],
      ['authData', data],
    ]),
  );
  const client = JSON.stringify({ type: 'webauthn.create', challenge, origin: party.origin });
  const response = {
    clientDataJSON: Buffer.from(client).toString('base64url'),
    attestationObject: object.toString('base64url'),
  };
  const credential = id.toString('base64url');
  return JSON.stringify({
    id: credential,
    rawId: credential,
    type: 'public-key',
    response,
    clientExtensionResults: {},
  });
}

test('nothing is fetched that a certificate in an attestation names', async () => {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const challenge = randomBytes(32).toString('base64url');
  const passkey = answer(challenge, [certificate(`http://127.0.0.1:${port}/revoked`)]);
  assert.equal(await verifyNew(party, { passkey, challenge }, '2030-01-01T00:00:00Z'), undefined);
  server.close();
  assert.deepEqual(asked, []);
});
