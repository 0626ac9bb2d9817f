/**
 * `andromeda check`: whether the service could start from a configuration, and serve. It keeps nothing, and works
 * while a service runs.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { clusterPaths } from '../../../domain/clusters/lab-paths.ts';
import { lineOf } from '../../../lib/yaml-lines.ts';
import { isFilledOtherwise, listNamedFiles, listSlugsIn } from '../../../store/data-dir/inspect.ts';
import { files } from '../../../store/engine/engine.ts';
import { checkOrganizations } from '../../config/groups.ts';
import type { Config } from '../../config/index.ts';
import { readLab } from '../../config/lab-file.ts';
import { lineOfSentence, readText } from '../../config/settings-file.ts';
import { checkCertificates } from '../certificates.ts';
import {
  checkAuditPaths,
  checkConfigFiles,
  checkDatabase,
  checkDataDir,
  checkKeys,
  checkNamedFile,
  isAllowed,
} from '../files.ts';
import { withConfig } from '../installation.ts';
import { checkBackupSettings } from './backup-findings.ts';
import { type Finding, ok, orWrong, warn, wrong } from './findings.ts';
import { type InspectOptions, inspect } from './inspect.ts';
import { checkShared, sharedConfig } from './shared-findings.ts';
import { checkIssuer } from './surroundings.ts';

export function check(options: InspectOptions): Promise<number> {
  return inspect('settings', options, checkConfig);
}

/** How `doctor` looks, which may write next to the database, and wants what is depended on to be there. */
export interface Deeper {
  isRunning: boolean;
}

/**
 * Findings about a configuration that was read from `file`: the one list, to which `doctor` adds, and which `service upgrade` has the new
 * program make first. Throws a sentence for a fault after which no check makes sense. `away`: what it is that a copy of the trail or a
 * backup cannot be written now, without which the service starts all the same.
 */
export async function* checkConfig(
  file: string,
  config: Config,
  ports: readonly Finding[],
  how: { deeper?: Deeper; away?: typeof wrong } = {},
): AsyncGenerator<Finding> {
  for await (const finding of findingsOf(file, config, ports, how)) {
    const { verdict, about } = finding;
    const named = withConfig(finding.text, file);
    const text = about === 'data' ? `dataDir: ${named}` : named;
    const line = verdict === 'ok' ? undefined : lineOfSentence(file, text);
    yield { ...finding, text: line === undefined ? named : `${line}: ${text}` };
  }
}

async function* findingsOf(
  file: string,
  config: Config,
  ports: readonly Finding[],
  { deeper, away = deeper ? wrong : warn }: { deeper?: Deeper; away?: typeof wrong },
): AsyncGenerator<Finding> {
  const { dataDir } = config;
  const unchanged = deeper === undefined;
  yield ok('settings', `${file} can be read, and every setting is one.`);
  yield* checkConfigFiles(file, config);
  yield* checkDataDir(dataDir);
  const shared = sharedConfig(config);
  if (shared) yield* checkShared(shared, deeper);
  else yield* checkDatabase(dataDir, { unchanged });
  yield* checkKeys(dataDir, { ...config, unchanged });
  yield* checkCertificates(config);
  yield* checkIssuer(config, unchanged ? warn : wrong);
  yield* ports;
  yield* checkAuditPaths(config, away);
  yield* checkBackupSettings(config, away);
  yield* checkSeed(config);
  if (!shared) yield* orWrong('groups', checkGroups(config));
  if (!shared) yield* checkClusterFiles(dataDir);
}

function* checkSeed({ seed, dataDir, database: shared }: Config): Generator<Finding> {
  if (seed === undefined) return;
  const { clusters = [] } = readLab(seed);
  yield ok('seed', `${seed} describes what an installation can be.`);
  const database = shared === undefined ? databaseOf(dataDir) : undefined;
  if (database !== undefined && isFilledOtherwise(database))
    yield warn(
      'seed',
      `${seed} is ignored: it is for an empty database, and this one has people or organizations already. Sign in, and take \`andromeda admin apply -f ${seed}\`.`,
    );
  for (const [index, cluster] of clusters.entries())
    for (const { setting, path } of clusterPaths(cluster)) {
      const found = checkNamedFile(`${cluster.name}, ${setting}`, path);
      const line = lineOf(seed, readText(seed), ['clusters', index, ...setting.split('.')]);
      yield found.verdict === 'ok' ? found : { ...found, text: `${line}: ${found.text}` };
    }
}

/** Whether the rules for groups name organizations that are there. A database that is new gets its first ones at the start. */
function* checkGroups({ identity: { groups }, dataDir }: Config): Generator<Finding> {
  const file = databaseOf(dataDir);
  const slugs = groups && file !== undefined ? listSlugsIn(file) : undefined;
  if (!groups || !slugs || slugs.length === 0) return;
  checkOrganizations(groups, slugs);
  yield ok('groups', 'Every rule for groups names an organization that is there.');
}

function* checkClusterFiles(dataDir: string): Generator<Finding> {
  const file = databaseOf(dataDir);
  if (file === undefined) return;
  const named = listNamedFiles(file, { unchanged: true });
  if (!named)
    return yield warn('cluster file', `What clusters name is in ${file}, which could not be read for it.`);
  for (const { cluster, setting, path } of named) yield checkNamedFile(`${cluster}, ${setting}`, path);
}

function databaseOf(dataDir: string): string | undefined {
  const file = join(dataDir, 'andromeda.db');
  return isAllowed(file, constants.R_OK) && files.isDatabase(file) ? file : undefined;
}
