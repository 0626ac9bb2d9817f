/**
 * A part of the composition root: the service's own keys. They are files of the data directory; where several servers share a
 * database, they are in it, and a file wins where there is one.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type IssuerKeys, keysText, makeKeys, parseKeys } from '../../api/identity/issuer/keys.ts';
import { type AuditKey, makeAuditKey, parseAuditKey } from '../../domain/audit/key.ts';
import { DomainError } from '../../domain/error.ts';
import { keyKinds } from '../../domain/key-rotation.ts';
import { consoleSecretName, secretsTopic, secretTitle, serviceSecrets } from '../../domain/service-secret.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import { loadSshKeySet, type SshKeySet, writePublicPart } from '../../lib/ssh/key-set.ts';
import { makeSshKeySet, parseSshKeySet, readKeySetFiles } from '../../lib/ssh/key-set-text.ts';
import { listMissingKeys, missingKeyText } from '../../store/data-dir/keys-in-use.ts';
import { hears, type Store } from '../../store/engine/index.ts';
import { listSecrets, missingSecretsKey, openSecrets, type Secrets } from '../../store/servers/secrets.ts';
import type { Config } from '../config/index.ts';

export interface ServiceKeys {
  /** What the gateway shows to people. */
  hostKey: SshKeySet;
  /** What it shows to login nodes. */
  clientKey: SshKeySet;
  /** Those below are undefined where each part keeps its own in the data directory. */
  auditKey: AuditKey | undefined;
  consoleSecret: Buffer | undefined;
  issuerKeys: IssuerKeys | undefined;
  /** The secrets in the database. */
  secrets: Secrets | undefined;
}

type Kind = keyof typeof serviceSecrets;

/**
 * Loads the keys, making those that are missing. Throws `invalid_state` with a sentence where one cannot be used, or the secrets in the
 * database cannot be read.
 */
export async function loadServiceKeys(
  config: Pick<Config, 'dataDir' | 'database' | 'secrets' | 'identity' | 'console'>,
  { store, log }: { store: Store; log: Logger },
): Promise<ServiceKeys> {
  const { dataDir, identity } = config;
  if (config.database === undefined || !config.secrets) {
    if (config.database !== undefined) throw missingSecretsKey(await listSecrets(store.read));
    refuseMissing(dataDir, identity.issuer === undefined);
    const sshKey = (kind: 'host' | 'client') => loadSshFiles(join(dataDir, serviceSecrets[kind].file));
    const elsewhere = { auditKey: undefined, issuerKeys: undefined, consoleSecret: undefined };
    return { hostKey: sshKey('host'), clientKey: sshKey('client'), ...elsewhere, secrets: undefined };
  }
  const secrets = await openSecrets(store, config.secrets);
  const shared = { dataDir, secrets, log };
  const sshKey = async (kind: 'host' | 'client') => {
    const { text, source, file } = await settle(shared, kind, makeSshKeySet);
    const keys = parseSshKeySet(text, source);
    if (file !== undefined) writePublicPart(file, keys);
    return keys;
  };
  const audit = await settle(shared, 'audit', makeAuditKey);
  const issuer =
    identity.issuer === undefined
      ? await settle(shared, 'issuer', async () => keysText(await makeKeys()))
      : undefined;
  return {
    hostKey: await sshKey('host'),
    clientKey: await sshKey('client'),
    auditKey: parseAuditKey(audit.text, audit.source),
    consoleSecret: config.console && (await loadConsoleSecret(secrets)),
    issuerKeys: issuer && parseKeys(issuer.text, issuer.source),
    secrets,
  };
}

/** A key that was used before is never replaced silently: people, login nodes and verifiers of signatures know it. */
function refuseMissing(dataDir: string, isIssuer: boolean): void {
  const kinds = keyKinds.filter((kind) => isIssuer || kind !== 'issuer');
  const [missing] = listMissingKeys(dataDir, [...kinds, 'audit'], { unchanged: false });
  if (missing) throw new DomainError('invalid_state', missingKeyText(missing));
}

/** The files of the data directory, as they always were. */
function loadSshFiles(file: string): SshKeySet {
  const keys = loadSshKeySet(file);
  writePublicPart(file, keys);
  return keys;
}

interface Shared {
  dataDir: string;
  secrets: Secrets;
  log: Logger;
}

/**
 * Where a key is: `file` undefined, in the database. A key that is a file is put into the database as well where there is none, so
 * that servers without the file have it. `source` is what to call it.
 */
async function settle(
  { dataDir, secrets, log }: Shared,
  kind: Kind,
  make: () => string | Promise<string>,
): Promise<{ text: string; file: string | undefined; source: string }> {
  const { name, file: path } = serviceSecrets[kind];
  const own = readOwnSecret(dataDir, kind);
  if (own === undefined)
    return { text: await secrets.findOrAdd(name, make), file: undefined, source: secretTitle(name) };
  const file = join(dataDir, path);
  const text = await secrets.findOrAdd(name, () => own);
  if (text.trim() !== own.trim())
    log.warn('secrets.differ', {
      name,
      file,
      message: `${file} is used, and the secret ${name} in the database is another: servers without that file use that one.`,
    });
  return { text: own, file, source: file };
}

/** A key that is a file of this server, as the database would have it; undefined where it is none. */
export function readOwnSecret(dataDir: string, kind: Kind): string | undefined {
  const file = join(dataDir, serviceSecrets[kind].file);
  if (!existsSync(file)) return undefined;
  return kind === 'host' || kind === 'client' ? readKeySetFiles(file) : readFileSync(file, 'utf8');
}

async function loadConsoleSecret(secrets: Secrets): Promise<Buffer> {
  const made = () => randomBytes(32).toString('base64');
  return Buffer.from(await secrets.findOrAdd(consoleSecretName, made), 'base64');
}

/** In case a message between servers was lost. */
const rereadMs = 30_000;

/**
 * Calls `use` with the issuer's keys when another server, or a command, has changed them. Returns how to stop. Not for keys
 * in a file, which takes precedence: that is read when the service starts or is reloaded.
 */
export function watchIssuerKeys(
  keys: Pick<ServiceKeys, 'issuerKeys' | 'secrets'>,
  { dataDir, store, log }: { dataDir: string; store: Store; log: Logger },
  use: (keys: IssuerKeys) => void,
): () => void {
  const { name, file } = serviceSecrets.issuer;
  const { secrets } = keys;
  if (!keys.issuerKeys || !secrets || existsSync(join(dataDir, file))) return () => {};
  let known = keysText(keys.issuerKeys).trim();
  let failing = '';

  async function reread(stopping: AbortSignal): Promise<void> {
    try {
      const text = await secrets?.find(name);
      failing = '';
      if (text === undefined || text.trim() === known || stopping.aborted) return;
      use(parseKeys(text, secretTitle(name)));
      known = text.trim();
    } catch (error) {
      const { message } = error as Error;
      // Once, and not at every interval.
      if (message !== failing && !stopping.aborted) log.error('secrets.unreadable', { error: message });
      failing = message;
    }
  }

  const rounds = startRounds(reread, { everyMs: rereadMs, onFault() {} });
  const stops = [
    store.messages.on(secretsTopic, rounds.wake),
    store.onChange(hears.serviceKeys, rounds.wake),
  ];
  return () => {
    for (const stop of stops) stop();
    void rounds.stop();
  };
}
