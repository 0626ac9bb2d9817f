/** The database of an installation, opened by a command on its host next to a service that may run. */
import { ownAccount } from '../../lib/host-ids.ts';
import type { SecretsKeys } from '../../lib/secrets-key.ts';
import { appendAuditEntry } from '../../store/audit/audit.ts';
import { openStore } from '../../store/data-dir/open-store.ts';
import type { Store, Tx } from '../../store/engine/index.ts';
import { systemUserId } from '../../store/people/people.ts';
import { openSecrets } from '../../store/servers/secrets.ts';
import { type KeyStore, keysInFiles, sharedKeys } from '../compose/key-stores.ts';
import { type Config, readConfig } from '../config/index.ts';
import { findConfig, refusal } from './installation.ts';
import { becomeOwnerOf } from './unit/account.ts';

/** The configuration of an installation; switches this process to the account of the installation. */
export function ownConfig(file: string | undefined): Config {
  const config = readConfig(findConfig(file));
  becomeOwnerOf(config.dataDir);
  return config;
}

/** `unchanged`: a PostgreSQL must have the schema of this version already, and keeps it. */
export async function openBeside(
  { dataDir, database, secrets }: Config,
  unchanged = true,
): Promise<{ store: Store } & AsyncDisposable> {
  const store = await openStore(dataDir, { beside: true, unchanged, database, secrets });
  return { store, [Symbol.asyncDispose]: () => store.close() };
}

export function appendHostEntry(
  tx: Tx,
  entry: { operation: string; target: string; details: string; subjectUserId?: string },
): Promise<number> {
  const reason = `On the host itself, as ${ownAccount()}`;
  return appendAuditEntry(tx, { actorUserId: systemUserId, reason, result: 'done', ...entry });
}

/** The key of the secrets in a shared database. Throws `invalid_state` with a sentence where there is none. */
export function requireSecretsKey({ secrets }: Pick<Config, 'secrets'>): SecretsKeys {
  if (secrets) return secrets;
  throw refusal(
    'The keys of the service are in the database, encrypted. Name the key as secretsKeyFile in the configuration, or set ANDROMEDA_SECRETS_KEY as for the service.',
  );
}

export async function openKeys(config: Config, store: Store): Promise<KeyStore> {
  const { dataDir, database } = config;
  if (database === undefined) return keysInFiles(dataDir, Date.now);
  return sharedKeys(dataDir, store, await openSecrets(store, requireSecretsKey(config)));
}
