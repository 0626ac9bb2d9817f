/** What a browser answers for a new passkey, as it comes from someone who wants the service to fetch something. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isoCBOR } from '@simplewebauthn/server/helpers';
import { verifyNew } from '../../../src/api/identity/issuer/account/second-factor.ts';
import { startAnswers } from '../../support/answers.ts';
import { temporaryDirectory } from '../../support/directory.ts';

const party = { id: 'login.example', origin: 'https://login.example' };

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
  const key = isoCBOR.encode(
    new Map<number, number | Buffer>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, point()],
      [-3, point()],
    ]),
  );
  const host = createHash('sha256').update(party.id).digest();
  const [flags, zeros, length] = [Buffer.from([0x45, 0, 0, 0, 1]), Buffer.alloc(16), Buffer.from([0, 16])];
  const data = Buffer.concat([host, flags, zeros, length, id, key]);
  const statement = new Map([['x5c', [...x5c]]]);
  const object = isoCBOR.encode(
    new Map<string, string | Buffer | typeof statement>([
      ['fmt', 'apple'],
      ['attStmt', statement],
      ['authData', data],
    ]),
  );
  const client = JSON.stringify({ type: 'webauthn.create', challenge, origin: party.origin });
  const response = {
    clientDataJSON: Buffer.from(client).toString('base64url'),
    attestationObject: Buffer.from(object).toString('base64url'),
  };
  const credential = id.toString('base64url');
  const ids = { id: credential, rawId: credential, type: 'public-key' };
  return JSON.stringify({ ...ids, response, clientExtensionResults: {} });
}

test('nothing is fetched that a certificate in an attestation names', async () => {
  const asked: (string | undefined)[] = [];
  await using server = await startAnswers(({ url }) => {
    asked.push(url);
    return [200, ''];
  });
  const challenge = randomBytes(32).toString('base64url');
  const passkey = answer(challenge, [certificate(`${server.url}/revoked`)]);
  assert.equal(await verifyNew(party, { passkey, challenge }, '2030-01-01T00:00:00Z'), undefined);
  assert.deepEqual(asked, []);
});
