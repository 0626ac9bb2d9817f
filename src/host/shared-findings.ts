/** What `check` and `doctor` say of a database that servers share, and of the secrets in it. */
import type { Config } from '../config/index.ts';
import { DomainError } from '../domain/error.ts';
import { describePostgres, parsePostgresUrl } from '../lib/postgres-url.ts';
import { openStore } from '../store/index.ts';
import { readSecrets } from '../store/secrets.ts';
import { type Finding, ok, wrong } from './findings.ts';
import { requireSecretsKey } from './secrets.ts';

type SharedConfig = Pick<Config, 'dataDir' | 'secrets'> & { database: string };

/** The configuration, where servers share a database. */
export function sharedConfig(config: Config): SharedConfig | undefined {
  const { database } = config;
  return database === undefined ? undefined : { ...config, database };
}

/** For `check`: nothing is asked over the network. */
export function* checkSharedSettings({ database, secrets }: SharedConfig): Generator<Finding> {
  yield ok('database', `${describePostgres(parsePostgresUrl(database))}. \`andromeda doctor\` asks there.`);
  yield* checkKey({ secrets });
}

/** For `doctor`: whether it answers, and its secrets can be read. */
export async function* checkSharedDatabase(config: SharedConfig): AsyncGenerator<Finding> {
  const { dataDir, database, secrets } = config;
  const about = 'database';
  try {
    const store = await openStore(dataDir, { beside: true, unchanged: true, database });
    try {
      yield ok(about, `${describePostgres(parsePostgresUrl(database))} answers.`);
      if (!secrets) return yield* checkKey(config);
      const all = await readSecrets(store.read, secrets);
      yield ok('secrets', `All ${all.size} in the database can be read with the key of ${secrets.source}.`);
    } finally {
      await store.close();
    }
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    yield wrong(about, error.message);
  }
  yield ok('backup', 'Dumps by pg_dump are not seen here. Keep the secrets key apart from them.');
}

function* checkKey({ secrets }: Pick<Config, 'secrets'>): Generator<Finding> {
  try {
    const { source } = requireSecretsKey({ secrets });
    yield ok('secrets', `${source} has the key of the secrets in the database.`);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    yield wrong('secrets', error.message);
  }
}
