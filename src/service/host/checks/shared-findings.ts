/** Findings of `check` and `doctor` about a database that servers share, and the secrets in it. Nothing is changed there. */
import { auditKeysAt, trustedKeys } from '../../../domain/audit/audit.ts';
import { DomainError } from '../../../domain/error.ts';
import { readKeySet, secretTitle, serviceSecrets } from '../../../domain/key-rotation.ts';
import { refuseUnfit, timelineNote } from '../../../store/data-dir/first-start.ts';
import { inspectShared, inspectSides, inspectTrail } from '../../../store/data-dir/inspect.ts';
import { type ServerView, viewPostgres } from '../../../store/engine/engine.ts';
import { listSlugs } from '../../../store/organizations/organizations.ts';
import {
  listGoneSecrets,
  listSecrets,
  missingSecretsKey,
  readSecrets,
} from '../../../store/servers/secrets.ts';
import type { Config } from '../../config/index.ts';
import { type Finding, ok, orWrong, warn, wrong } from './findings.ts';
import { judgeClusters, judgeGroups, judgeTrail } from './surroundings.ts';

type SharedConfig = Pick<Config, 'dataDir' | 'secrets' | 'identity'>;

/**
 * Checks that a server could start with the database; a start waits for one that is away. `deeper`: requires it to
 * answer, and checks its content.
 */
export async function* checkShared(
  database: string,
  config: SharedConfig,
  deeper: { isRunning: boolean } | undefined,
): AsyncGenerator<Finding> {
  let view: ServerView | undefined;
  try {
    view = await viewPostgres(database, timelineNote(config.dataDir, false));
    yield ok('database', `${view.name} answers.`);
    yield* checkLock(view);
    const { isNew } = yield* checkSchema(view);
    await refuseUnfit(isNew ? undefined : view.reader, view.name, config.dataDir, config.secrets);
    if (isNew) yield* checkNoSecrets(config);
    else {
      yield* orWrong('secrets', checkSecrets(config, view));
      const { groups } = config.identity;
      if (groups) yield* orWrong('groups', judgeGroups(groups, await listSlugs(view.reader)));
      if (deeper) yield* judgeTrail(await inspectTrail(view.reader), await auditKeysIn(config, view));
      if (deeper) yield* judgeClusters(await inspectSides(view.reader), deeper.isRunning);
    }
    if (deeper)
      yield ok('backup', 'Dumps by pg_dump are not seen here. Keep the secrets key apart from them.');
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    yield error.code === 'service_unavailable' && !deeper
      ? warn('database', `${error.message} A server that starts waits for it.`)
      : wrong('database', error.message);
  } finally {
    await view?.close();
  }
}

/** Reports the holder of a lock that others wait for, by name: `/readyz`, which is public, says only that there is such a lock. */
async function* checkLock({ findObstacle }: ServerView): AsyncGenerator<Finding> {
  const { reason, detail } = await findObstacle();
  if (detail !== undefined) yield wrong('database', `Something waits: ${reason}. ${detail}.`);
}

async function* checkSchema(view: ServerView): AsyncGenerator<Finding, { isNew: boolean }> {
  const about = 'database';
  const { state, missing, foreign, isMovedAway } = await inspectShared(view);
  if (isMovedAway)
    yield wrong(about, 'It takes no writes any more: `andromeda migrate` copied the installation out of it.');
  if (missing.length > 0)
    yield wrong(
      about,
      `It lacks ${some(missing)}: dropped, or a restore was cut short. Stop every server, and restore a dump of it into a new database (docs/operations.md).`,
    );
  if (foreign.length > 0)
    yield warn(
      about,
      `It has tables that are not Andromeda's: ${some(foreign)}. Give each a database, or a schema, of its own.`,
    );
  if (state === 'new') yield ok(about, 'There is nothing in it yet; the first start fills it.');
  if (state === 'older')
    yield warn(about, 'It is of an older version; the first server of this one brings it up to date.');
  if (state === 'newer')
    yield warn(about, 'It is of a newer version. Look with that one at whether its tables are all there.');
  if (state === 'known' && missing.length === 0)
    yield ok(about, 'Every table, column, index and trigger is there.');
  return { isNew: state === 'new' };
}

/** The public keys of the audit trail; empty where they cannot be read, which another check reports. */
async function auditKeysIn({ secrets }: SharedConfig, { reader }: ServerView): Promise<string[]> {
  const { name } = serviceSecrets.audit;
  const text = secrets && (await readSecrets(reader, secrets).catch(() => undefined))?.get(name);
  return text === undefined
    ? []
    : trustedKeys(auditKeysAt(readKeySet(text, secretTitle(name)), secretTitle(name), Date.now()));
}

const named = 5;

function some(names: readonly string[]): string {
  const more = names.length > named ? ` and ${names.length - named} more` : '';
  return `${names.slice(0, named).join(', ')}${more}`;
}

function* checkNoSecrets({ secrets }: SharedConfig): Generator<Finding> {
  if (secrets) yield ok('secrets', `${secrets.source} has the key that those to be made are encrypted with.`);
  else yield wrong('secrets', missingSecretsKey([]).message);
}

async function* checkSecrets({ secrets }: SharedConfig, { reader }: ServerView): AsyncGenerator<Finding> {
  const all = await listSecrets(reader);
  if (!secrets) throw missingSecretsKey(all);
  const gone = await listGoneSecrets(reader);
  if (gone.length > 0)
    return yield wrong(
      'secrets',
      `${some(gone)} ${gone.length === 1 ? 'is' : 'are'} gone from the database. Restore the table \`secrets\` from a dump.`,
    );
  const { size } = await readSecrets(reader, secrets);
  if (size === 0) yield ok('secrets', `There is none in the database yet; ${secrets.source} has a key.`);
  else yield ok('secrets', `All ${size} in the database can be read with the key of ${secrets.source}.`);
}
