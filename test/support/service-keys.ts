/** The service's own keys in a data directory, made where there are none, for parts of it that are tested alone. */
import {
  type IssuerKeys,
  issuerKeysOf,
  makeIssuerKey,
  parseIssuerKeys,
} from '../../src/api/identity/issuer/keys.ts';
import { type AuditKey, makeAuditKey } from '../../src/domain/audit/audit.ts';
import { type HeldKeys, keysAt, mapKeys } from '../../src/domain/key-rotation.ts';
import { parseSecretsKeys, type SecretsKeys } from '../../src/lib/secrets-key.ts';
import { generateSshKey, parseSshKey } from '../../src/lib/ssh/public-key.ts';
import { readAuditKeys, readKeyFiles, writeKeyFiles } from '../../src/store/data-dir/key-files.ts';

/** Those that hold at each moment. */
export function auditKeys(dataDir: string): () => HeldKeys<AuditKey> {
  if (!readAuditKeys(dataDir)) writeKeyFiles(dataDir, 'audit', { key: makeAuditKey() });
  return () => {
    const held = readAuditKeys(dataDir);
    if (!held) throw new Error('the key is gone');
    return held;
  };
}

export function loadAuditKey(dataDir: string): AuditKey {
  return auditKeys(dataDir)().used;
}

/** One a process: to make one takes long. */
let issuerKey: Promise<string> | undefined;

export async function loadIssuerKeys(dataDir: string): Promise<IssuerKeys> {
  const found = readKeyFiles(dataDir, 'issuer');
  issuerKey ??= makeIssuerKey();
  const set = found ?? { key: await issuerKey };
  if (!found) writeKeyFiles(dataDir, 'issuer', set);
  return issuerKeysOf(
    keysAt(
      mapKeys(set, (text) => parseIssuerKeys(text, 'issuer-keys.json')),
      Date.now(),
    ),
  );
}

/** The public key. */
export function loadSshKeyOf(dataDir: string, kind: 'host' | 'client'): string {
  const found = readKeyFiles(dataDir, kind);
  const set = found ?? { key: generateSshKey().privateKey };
  if (!found) writeKeyFiles(dataDir, kind, set);
  return parseSshKey(set.key)?.publicKey ?? '';
}

/** Keys of secrets in a database, of what `makeSecretsKey` gave. */
export function keysOf(text: string): SecretsKeys {
  const keys: SecretsKeys = parseSecretsKeys(text, 'the file', () => keys);
  return keys;
}
