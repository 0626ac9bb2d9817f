/**
 * `andromeda check`: whether the service could start from a configuration, and serve. It changes nothing, and works
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
import { checkBackupSettings } from './backup-findings.ts';
import { type Finding, ok, orWrong, warn } from './findings.ts';
import { type InspectOptions, inspect } from './inspect.ts';
import { checkSharedSettings, sharedConfig } from './shared-findings.ts';
import { checkIssuer } from './surroundings.ts';

export function check(options: InspectOptions): Promise<number> {
  return inspect('settings', options, checkConfig);
}

/** Findings about a configuration that was read from `file`. Throws a sentence for a fault after which no check makes sense. */
export async function* checkConfig(
  file: string,
  config: Config,
  ports: readonly Finding[],
): AsyncGenerator<Finding> {
  for await (const finding of findingsOf(file, config, ports)) {
    const { verdict, about } = finding;
    const text = about === 'data' ? `dataDir: ${finding.text}` : finding.text;
    const line = verdict === 'ok' ? undefined : lineOfSentence(file, text);
    yield line === undefined ? finding : { ...finding, text: `${line}: ${text}` };
  }
}

async function* findingsOf(file: string, config: Config, ports: readonly Finding[]): AsyncGenerator<Finding> {
  yield ok('settings', `${file} can be read, and every setting is one.`);
  yield* checkConfigFiles(file, config);
  yield* checkDataDir(config.dataDir);
  const shared = sharedConfig(config);
  if (shared) yield* checkSharedSettings(shared);
  else yield* checkDatabase(config.dataDir);
  yield* checkKeys(config.dataDir, { ...config, unchanged: true });
  yield* checkCertificates(config);
  if (config.identity.issuer !== undefined) yield* checkIssuer(config, warn);
  yield* ports;
  yield* checkAuditPaths(config);
  yield* checkBackupSettings(config);
  yield* checkSeed(config);
  if (!shared) yield* orWrong('groups', checkGroups(config));
  if (!shared) yield* checkClusterFiles(config.dataDir);
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
  const named = listNamedFiles(file);
  if (!named)
    return yield warn('cluster file', `What clusters name is in ${file}, which could not be read for it.`);
  for (const { cluster, setting, path } of named) yield checkNamedFile(`${cluster}, ${setting}`, path);
}

function databaseOf(dataDir: string): string | undefined {
  const file = join(dataDir, 'andromeda.db');
  return isAllowed(file, constants.R_OK) && files.isDatabase(file) ? file : undefined;
}
