/**
 * `andromeda check`: whether the service could start from a configuration, and serve. It stores nothing, and works
 * while a service runs.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { clusterPaths } from '../../../domain/clusters/lab-paths.ts';
import { lineOf } from '../../../lib/yaml-lines.ts';
import { isFilledOtherwise, listNamedFiles, listSlugsIn } from '../../../store/data-dir/inspect.ts';
import { files } from '../../../store/engine/engine.ts';
import { lastFailureOfAcme } from '../../compose/certificates.ts';
import {
  endText,
  type ListenerCertificate,
  listCertificates,
  missingCertificate,
  problemOf,
} from '../../config/certificates.ts';
import { type Config, readConfig } from '../../config/index.ts';
import { readLab } from '../../config/lab-file.ts';
import { lineOfSentence, readText } from '../../config/settings-file.ts';
import {
  checkAuditFile,
  checkConfigFiles,
  checkDatabase,
  checkDataDir,
  checkKeys,
  checkNamedFile,
  isAllowed,
} from '../files.ts';
import { findConfig, withConfig } from '../installation.ts';
import { checkPorts } from '../ports.ts';
import { becomeOwnerOf } from '../unit/account.ts';
import { checkBackupSettings } from './backup-findings.ts';
import { type Finding, findingOf, ok, orWrong, printFindings, warn, wrong } from './findings.ts';
import { checkShared } from './shared-findings.ts';
import { checkIssuer, judgeGroups } from './surroundings.ts';

export function check(options: InspectOptions): Promise<number> {
  return inspect('settings', options, checkConfig);
}

/** Options of `doctor`, which may write next to the database, and requires dependencies to be there. */
export interface Deeper {
  isRunning: boolean;
}

/**
 * Findings about a configuration that was read from `file`: the one list, which `doctor` extends, and which `service
 * upgrade` has the new program make first. Throws a sentence for a fault after which no check makes sense. `away`: the
 * verdict where a copy of the trail or a backup cannot be written now, which does not keep the service from starting.
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
  const { dataDir, database } = config;
  const unchanged = deeper === undefined;
  yield ok('settings', `${file} can be read, and every setting is one.`);
  yield* checkConfigFiles(file, config);
  yield* checkDataDir(dataDir);
  if (database !== undefined) yield* checkShared(database, config, deeper);
  else yield* checkDatabase(dataDir, { unchanged });
  yield* checkKeys(dataDir, { ...config, unchanged });
  yield* checkCertificates(config);
  yield* checkIssuer(config, unchanged ? warn : wrong);
  yield* ports;
  yield* checkGatewayPort(config);
  yield* checkAuditFile(config.audit, away);
  yield* checkBackupSettings(config, away);
  yield* checkSeed(config);
  if (database === undefined) yield* orWrong('groups', checkGroups(config));
  if (database === undefined) yield* checkClusterFiles(dataDir);
}

/** `ssh-access` and the client give people `gateway.port`, 22 by default. */
function* checkGatewayPort({ gateway: { listen, port, proxyProtocol } }: Config): Generator<Finding> {
  if (port === listen.port || proxyProtocol === 'required') return;
  yield warn(
    'gateway',
    `gateway.port: people log in to port ${port}, and the gateway listens on ${listen.port}. Give gateway.port: ${listen.port}, unless something in front passes port ${port} on.`,
  );
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

/** A new database gets its first organizations at the start. */
function* checkGroups({ identity: { groups }, dataDir }: Config): Generator<Finding> {
  const file = databaseOf(dataDir);
  const slugs = groups && file !== undefined ? listSlugsIn(file) : undefined;
  if (groups && slugs && slugs.length > 0) yield* judgeGroups(groups, slugs);
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

export interface InspectOptions {
  config?: string;
  quiet: boolean;
  json?: boolean;
}

/** Prints the findings of `examine`. Resolves to the exit status: 0 where nothing is wrong. `about`: the subject of a refusal. */
export function inspect(
  about: string,
  { config: given, quiet, json }: InspectOptions,
  examine: (file: string, config: Config, ports: readonly Finding[]) => AsyncIterable<Finding>,
  isRunning: (dataDir: string) => boolean = () => false,
): Promise<number> {
  async function* findings(): AsyncGenerator<Finding> {
    const file = findConfig(given);
    const config = readConfig(file);
    // Still as root, before the switch to the service's account, which gets its ports from systemd.
    const ports = await checkPorts(config, { isRunning: isRunning(config.dataDir) });
    becomeOwnerOf(config.dataDir);
    yield* examine(file, readConfig(file), ports);
  }
  return printFindings(orWrong(about, findings()), quiet, json);
}

const certificate = 'certificate';

function* checkCertificates(config: Config): Generator<Finding> {
  for (const one of listCertificates(config)) yield checkCertificate(one, config, Date.now());
  const missing = missingCertificate(config);
  if (missing !== undefined) yield warn(certificate, missing);
  const last = config.acme && lastFailureOfAcme(config.dataDir);
  if (last) yield warn(certificate, `${last.failure} It is tried again at ${last.notBefore}.`);
}

function checkCertificate(one: ListenerCertificate, config: Config, now: number): Finding {
  const { setting, file, otherHost, names, isRenewed } = one;
  const problem = problemOf(one, now);
  if (otherHost !== undefined && problem?.urgency !== 'now') {
    const text = `${setting}: ${file} is for ${names}, and not for ${otherHost}, which the url names.`;
    // A proxy in front may have another certificate, and the service is about to obtain one.
    return config.trustedProxies.length > 0 || isRenewed ? warn(certificate, text) : wrong(certificate, text);
  }
  if (!problem) return ok(certificate, `${setting}: ${endText(one, now)}. It is for ${names}.`);
  return findingOf(certificate, { ...problem, message: `${setting}: ${problem.message}` });
}
