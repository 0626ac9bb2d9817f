/**
 * Load that writes: `node write-load.ts <JSON of WriteOrder>` registers SSH keys, each a new one with a new
 * Idempotency-Key, and prints one `LoadResult`.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { lengthPrefixed } from '../../test/support/ssh-keys.ts';
import { load } from './load.ts';

export interface WriteOrder {
  port: number;
  /** Holds an array of Authorization headers as JSON, used in rotation. */
  peopleFile: string;
  connections: number;
  seconds: number;
}

const order = JSON.parse(process.argv[2] ?? '') as WriteOrder;
const people = JSON.parse(readFileSync(order.peopleFile, 'utf8')) as string[];
let sent = 0;
process.stdout.write(`${JSON.stringify(await load(order, registration))}\n`);

function registration(): Buffer {
  sent += 1;
  const body = JSON.stringify({ public_key: publicKey() });
  const lines = [
    'POST /me/ssh-keys HTTP/1.1',
    'Host: localhost',
    `Authorization: ${people[sent % people.length]}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    `Idempotency-Key: ${randomUUID()}`,
    'Audit-Reason: bench',
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1');
}

/** Any 32 bytes look like an Ed25519 key, and cost no curve. */
function publicKey(): string {
  const blob = Buffer.concat([lengthPrefixed('ssh-ed25519'), lengthPrefixed(randomBytes(32))]);
  return `ssh-ed25519 ${blob.toString('base64')}`;
}
