/** Files below `keys` in the data directory: written atomically, readable only by the service. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeWhole } from '../../lib/whole-file.ts';

export interface KeptCertificate {
  /** The chain, the service's own certificate first, and the key. */
  pem: Buffer;
  beginsAt: number;
  endsAt: number;
}

/** State of attempts, kept on disk so that a process that crashes and restarts does not ask the authority each time. */
export interface AcmeState {
  obtainedFor?: string;
  /** The names and authority of the attempts below; others start from nothing. */
  attemptedFor?: string;
  failures?: number;
  notBefore?: string;
  /** The last fault, as a sentence. */
  failure?: string;
}

/** The certificate; undefined where there is no usable one, so that a new one is obtained. */
export function readCertificate(dataDir: string): KeptCertificate | undefined {
  try {
    return parseCertificate(readFileSync(fileOf(dataDir, 'acme_certificate.pem')));
  } catch {
    return undefined;
  }
}

/** Throws where the file is no certificate with its key. */
export function parseCertificate(pem: Buffer): KeptCertificate {
  const certificate = new X509Certificate(pem);
  if (!certificate.checkPrivateKey(createPrivateKey(pem))) throw new Error('the key is another one’s');
  return { pem, beginsAt: Date.parse(certificate.validFrom), endsAt: Date.parse(certificate.validTo) };
}

export function writeCertificate(dataDir: string, pem: Buffer): void {
  write(dataDir, 'acme_certificate.pem', pem.toString('latin1'));
}

export async function loadAccountKey(dataDir: string, make: () => Promise<Buffer>): Promise<Buffer> {
  const file = fileOf(dataDir, 'acme_account.pem');
  if (existsSync(file)) return readFileSync(file);
  const key = await make();
  write(dataDir, 'acme_account.pem', key.toString('latin1'));
  return key;
}

export function readState(dataDir: string): AcmeState {
  try {
    return JSON.parse(readFileSync(fileOf(dataDir, 'acme.json'), 'utf8')) as AcmeState;
  } catch {
    // A missing or truncated file: no attempt is known.
    return {};
  }
}

export function writeState(dataDir: string, state: AcmeState): void {
  write(dataDir, 'acme.json', `${JSON.stringify(state)}\n`);
}

function write(dataDir: string, name: string, text: string): void {
  mkdirSync(join(dataDir, 'keys'), { recursive: true, mode: 0o700 });
  writeWhole(fileOf(dataDir, name), text);
}

function fileOf(dataDir: string, name: string): string {
  return join(dataDir, 'keys', name);
}
