/**
 * A part of the composition root: the service's own keys, and which are valid now. Keys that a command adds are taken
 * up while the service runs, and a key is dropped when its time is over.
 */
import { randomBytes } from 'node:crypto';
import { type IssuerKeys, makeIssuerKey, parseIssuerKeys } from '../../api/identity/issuer/keys.ts';
import { type AuditKey, makeAuditKey, parseAuditKey } from '../../domain/audit/audit.ts';
import { invalidState } from '../../domain/error.ts';
import type { ServiceKey } from '../../domain/installation-state.ts';
import {
  consoleSecretName,
  type HeldKeys,
  type KeyKind,
  type KeySet,
  keysAt,
  mapKeys,
  secretsTopic,
  settled,
  spoiltKeyAdvice,
} from '../../domain/key-rotation.ts';
import type { Logger } from '../../lib/log.ts';
import { startRounds } from '../../lib/rounds.ts';
import { generateSshKey, parseSshKey, type SshKeyFile } from '../../lib/ssh/public-key.ts';
import {
  findMissingKeys,
  keyFileOf,
  kindsOf,
  missingKeyText,
  noteKey,
  readKeyFiles,
} from '../../store/data-dir/key-files.ts';
import { hears, type Store } from '../../store/engine/index.ts';
import { listSecrets, missingSecretsKey, openSecrets, type Secrets } from '../../store/servers/secrets.ts';
import type { Config } from '../config/index.ts';
import { type KeyStore, keysInFiles, sharedKeys } from './key-stores.ts';

interface KeyTypes {
  host: SshKeyFile;
  client: SshKeyFile;
  issuer: IssuerKeys;
  audit: AuditKey;
}

export interface ServiceKeys {
  /** The keys that are valid now. Throws where there are none of that kind. */
  of<Kind extends KeyKind>(kind: Kind): HeldKeys<KeyTypes[Kind]>;
  kinds: readonly KeyKind[];
  /** Reads the keys again, and drops those whose time is over. */
  refresh(): Promise<void>;
  /** Undefined where the console makes its own. */
  consoleSecret: Buffer | undefined;
  /** The secrets in a shared database; undefined where the database is this server's alone. */
  secrets: Secrets | undefined;
}

const parsers: { [Kind in KeyKind]: (text: string, title: string) => KeyTypes[Kind] } = {
  host: (text, title) => parseSsh('host', text, title),
  client: (text, title) => parseSsh('client', text, title),
  issuer: parseIssuerKeys,
  audit: parseAuditKey,
};

function parseSsh(kind: 'host' | 'client', text: string, title: string): SshKeyFile {
  const key = parseSshKey(text);
  if (key) return key;
  throw invalidState(
    `The key in ${title} cannot be used: it holds no Ed25519 private key in OpenSSH’s format that is without a passphrase. ${spoiltKeyAdvice(kind)}`,
  );
}

/** Makes a new key, perhaps as the successor of `former`, which vouches for nothing any more if it was `stolen`. */
export async function makeKey(
  kind: KeyKind,
  former?: { text: string; title: string; stolen: boolean },
): Promise<string> {
  if (kind === 'audit') return makeAuditKey(former);
  if (kind === 'issuer') return makeIssuerKey(former && parseIssuerKeys(former.text, former.title));
  return generateSshKey().privateKey;
}

export function describeKey(key: KeyTypes[KeyKind]): ServiceKey {
  if ('signing' in key) return { id: key.signing[0]?.kid ?? '' };
  return 'fingerprint' in key ? { id: key.fingerprint, line: key.publicKey } : { id: key.publicKey };
}

/** The public identity of a key's text. Throws `invalid_state` with a sentence about `title` where it is no key. */
export function describeText(kind: KeyKind, text: string, title: string): ServiceKey {
  return describeKey(parsers[kind](text, title));
}

const changedText = (kind: KeyKind) =>
  `The key ${kind} is another than at the last start. If \`andromeda admin key\` did not change it, its file was replaced.`;

type KeyConfig = Pick<Config, 'dataDir' | 'database' | 'secrets' | 'identity' | 'console'>;

/**
 * Loads the keys, making those that are missing. Throws `invalid_state` with a sentence where a key is unusable, or
 * the secrets in the database cannot be read.
 */
export async function loadServiceKeys(
  config: KeyConfig,
  { store, log, now }: { store: Store; log: Logger; now(): number },
): Promise<ServiceKeys> {
  const kinds = kindsOf(config.identity);
  const { keyStore, secrets } = await openKeyStore(config, { store, log, now }, kinds);
  const sets = new Map<KeyKind, KeySet<KeyTypes[KeyKind]>>();
  const take = (kind: KeyKind, set: KeySet<string>) =>
    sets.set(
      kind,
      mapKeys(set, (text) => parsers[kind](text, keyStore.title(kind))),
    );
  for (const kind of kinds) {
    const own = secrets && !(await keyStore.find(kind)) ? readKeyFiles(config.dataDir, kind) : undefined;
    // Checked before it is copied into the database.
    if (own) parsers[kind](own.key, keyFileOf(config.dataDir, kind));
    take(kind, await keyStore.findOrMake(kind, () => makeKey(kind)));
  }
  const of = <Kind extends KeyKind>(kind: Kind) => {
    const set = sets.get(kind);
    if (!set) throw new Error(`this installation has no key ${kind}`);
    return keysAt(set as KeySet<KeyTypes[Kind]>, now());
  };
  for (const kind of secrets ? [] : kinds) {
    const { id } = describeKey(of(kind).used);
    if (await noteKey(store, kind, id)) log.warn('key.changed', { kind, id, message: changedText(kind) });
  }
  return {
    kinds,
    secrets,
    consoleSecret: config.console && secrets && (await loadConsoleSecret(secrets)),
    of,
    async refresh() {
      for (const kind of kinds) {
        const set = await keyStore.find(kind);
        if (!set) continue;
        if (settled(set, now()) !== set) await keyStore.change(kind, settled);
        take(kind, set);
      }
    },
  };
}

async function openKeyStore(
  { dataDir, database, secrets: keys }: KeyConfig,
  { store, log, now }: { store: Store; log: Logger; now(): number },
  kinds: readonly KeyKind[],
): Promise<{ keyStore: KeyStore; secrets?: Secrets }> {
  if (database !== undefined) {
    if (!keys) throw missingSecretsKey(await listSecrets(store.read));
    const secrets = await openSecrets(store, keys);
    return { keyStore: sharedKeys(dataDir, store, secrets, log), secrets };
  }
  // A missing key that was used before is never replaced silently: people, login nodes and verifiers of signatures know it.
  const [missing] = await findMissingKeys(store, dataDir, kinds);
  if (missing) throw invalidState(missingKeyText(missing));
  return { keyStore: keysInFiles(dataDir, now) };
}

async function loadConsoleSecret(secrets: Secrets): Promise<Buffer> {
  const made = () => randomBytes(32).toString('base64');
  return Buffer.from(await secrets.findOrAdd(consoleSecretName, made), 'base64');
}

/** Reread interval: a command changes files without a notice, and messages between servers can be lost. */
const rereadMs = 10_000;

/** Calls `use` now and whenever the keys may have changed. Returns a function that stops. */
export function followKeys(
  keys: ServiceKeys,
  { store, log }: { store: Store; log: Logger },
  use: () => void,
): () => Promise<void> {
  let failing = '';
  const reread = async (stopping: AbortSignal) => {
    try {
      await keys.refresh();
      failing = '';
    } catch (error) {
      const { message } = error as Error;
      // Logged once, not at every interval.
      if (message !== failing && !stopping.aborted) log.error('secrets.unreadable', { error: message });
      failing = message;
    }
    // Also after a failed read: the current key depends on the time alone.
    if (!stopping.aborted) use();
  };
  const rounds = startRounds(reread, { everyMs: rereadMs, onFault() {} });
  const stops = [
    store.messages.on(secretsTopic, rounds.wake),
    store.onChange(hears.serviceKeys, rounds.wake),
  ];
  return async () => {
    for (const stop of stops) stop();
    await rounds.stop();
  };
}
