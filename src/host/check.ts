/**
 * `andromeda check`: whether the service could start from a configuration, and serve. It changes nothing, and works
 * beside a service that runs.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { type Config, readConfig } from '../config/index.ts';
import { readLab } from '../config/lab-file.ts';
import { DomainError } from '../domain/error.ts';
import { clusterPaths } from '../domain/lab-paths.ts';
import { isDatabaseFile, isFilledOtherwise, listNamedFiles } from '../store/file-view.ts';
import { becomeOwnerOf } from './account.ts';
import { checkBackupSettings } from './backup-findings.ts';
import { checkCertificates } from './certificates.ts';
import {
  checkAuditPaths,
  checkConfigFiles,
  checkDatabase,
  checkDataDir,
  checkNamedFile,
  isAllowed,
} from './files.ts';
import { type Finding, ok, printFindings, warn, wrong } from './findings.ts';
import { findConfig } from './installation.ts';
import { checkPorts } from './ports.ts';
import { checkSharedSettings, sharedConfig } from './shared-findings.ts';

export interface CheckOptions {
  config?: string;
  /** Only what is not well is printed. */
  quiet: boolean;
}

/** Prints what it finds. Resolves to the exit status: 0 where nothing is wrong. */
export function check(options: CheckOptions): Promise<number> {
  return printFindings(findings(options), options.quiet);
}

async function* findings(options: CheckOptions): AsyncGenerator<Finding> {
  try {
    const file = findConfig(options.config);
    const config = readConfig(file);
    // As root, before it becomes the account that the service runs as: that one has the ports from systemd.
    const ports = await Array.fromAsync(checkPorts(config));
    becomeOwnerOf(config.dataDir);
    readConfig(file);
    yield ok('settings', `${file} can be read, and every setting is one.`);
    yield* checkConfigFiles(file, config);
    yield* checkDataDir(config.dataDir);
    const shared = sharedConfig(config);
    if (shared) yield* checkSharedSettings(shared);
    else yield* checkDatabase(config.dataDir);
    yield* checkCertificates(config);
    yield* ports;
    yield* checkAuditPaths(config);
    yield* checkBackupSettings(config);
    yield* checkSeed(config);
    if (!shared) yield* checkClusterFiles(config.dataDir);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    yield wrong('settings', error.message);
  }
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
  for (const cluster of clusters)
    for (const { setting, path } of clusterPaths(cluster))
      yield checkNamedFile(`${cluster.name}, ${setting}`, path);
}

/** What clusters of the installation name: keys, kubeconfigs, tokens. */
function* checkClusterFiles(dataDir: string): Generator<Finding> {
  const file = databaseOf(dataDir);
  if (file === undefined) return;
  const named = listNamedFiles(file);
  if (!named)
    return yield warn('cluster file', `What clusters name is in ${file}, which could not be read for it.`);
  for (const { cluster, setting, path } of named) yield checkNamedFile(`${cluster}, ${setting}`, path);
}

/** The database, where there is one that can be read. */
function databaseOf(dataDir: string): string | undefined {
  const file = join(dataDir, 'andromeda.db');
  return isAllowed(file, constants.R_OK) && isDatabaseFile(file) ? file : undefined;
}
