/** The file with the private key that a backup is decrypted with: one of age's, or an SSH key without a passphrase. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { DomainError } from '../domain/error.ts';
import { sshString, WireReader } from '../ssh/wire.ts';
import { ed25519Identity, rsaIdentity, type SshIdentity, unsigned } from './ssh-stanzas.ts';

/** A text is one of age's own identities. */
export type BackupIdentity = string | SshIdentity;

const maxBytes = 64 * 1024;

/** The identities in a file. Throws `invalid_request` with a sentence that names it. */
export function readIdentities(file: string): BackupIdentity[] {
  const text = readText(file);
  const own = text.split(/\r?\n/).filter((line) => line.startsWith('AGE-SECRET-KEY-'));
  if (own.length > 0) return own.map((line) => line.trim());
  if (/^age-encryption\.org\/|-----BEGIN AGE ENCRYPTED FILE-----/.test(text))
    throw invalid(
      `${file} is itself encrypted. Decrypt it first: age --decrypt --output key.txt ${file}; and remove key.txt afterwards.`,
    );
  const identity = /-----BEGIN OPENSSH PRIVATE KEY-----/.test(text)
    ? opensshIdentity(file, text)
    : pemIdentity(text);
  if (identity) return [identity];
  throw invalid(
    `${file} holds no key that a backup can be decrypted with: one of age (AGE-SECRET-KEY-…), or an SSH key of the type Ed25519 or RSA.`,
  );
}

function readText(file: string): string {
  try {
    if (statSync(file).size > maxBytes) throw invalid(`${file} is no file of a key: it is too large.`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof DomainError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === 'ENOENT' ? 'there is no such file' : code;
    throw invalid(`The identity ${file} cannot be read: ${reason}.`);
  }
}

/** PROTOCOL.key of OpenSSH. */
function opensshIdentity(file: string, text: string): SshIdentity | undefined {
  try {
    const whole = Buffer.from(text.replace(/-----[^-]+-----/g, ''), 'base64');
    const fields = new WireReader(whole, 'openssh-key-v1\0'.length);
    const cipher = fields.text();
    if (cipher !== 'none')
      throw invalid(
        `${file} has a passphrase. Make a copy without one (ssh-keygen -p -N '' -f COPY), and remove it afterwards.`,
      );
    fields.text();
    fields.bytes();
    fields.uint32();
    const blob = Buffer.from(fields.bytes());
    const secret = new WireReader(fields.bytes(), 8);
    const type = secret.text();
    if (type === 'ssh-ed25519') {
      secret.bytes();
      return ed25519Identity(blob, secret.bytes().subarray(0, 32));
    }
    if (type !== 'ssh-rsa') return undefined;
    const [n, e, d, qi, pFactor, q] = Array.from({ length: 6 }, () => unsigned(secret.bytes()));
    if (!n || !e || !d || !qi || !pFactor || !q) return undefined;
    return rsaIdentity(blob, rsaKey({ n, e, d, qi, p: pFactor, q }));
  } catch (error) {
    if (error instanceof DomainError) throw error;
    return undefined;
  }
}

function rsaKey(parts: Record<'n' | 'e' | 'd' | 'qi' | 'p' | 'q', Buffer>): KeyObject {
  const rest = (factor: Buffer) => bytesOf(number(parts.d) % (number(factor) - 1n));
  const fields = { ...parts, dp: rest(parts.p), dq: rest(parts.q) };
  const encoded = Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, value.toString('base64url')]),
  );
  return createPrivateKey({ key: { kty: 'RSA', ...encoded }, format: 'jwk' });
}

/** RSA keys of older programs. */
function pemIdentity(text: string): SshIdentity | undefined {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType !== 'rsa') return undefined;
    const { n = '', e = '' } = createPublicKey(key).export({ format: 'jwk' });
    const [exponent, modulus] = [e, n].map((one) => positive(Buffer.from(one, 'base64url')));
    const blob = [Buffer.from('ssh-rsa'), exponent, modulus].map((part) => sshString(part ?? ''));
    return rsaIdentity(Buffer.concat(blob), key);
  } catch {
    return undefined;
  }
}

function positive(bytes: Buffer): Buffer {
  return (bytes[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes;
}

function number(bytes: Buffer): bigint {
  return BigInt(`0x${bytes.toString('hex')}`);
}

function bytesOf(value: bigint): Buffer {
  const text = value.toString(16);
  return Buffer.from(text.padStart(text.length + (text.length % 2), '0'), 'hex');
}

function invalid(message: string): DomainError {
  return new DomainError('invalid_request', message);
}
