/**
 * `andromeda doctor`: whether an installation is well. It reads the database in many short transactions, so that a
 * running service continues, and changes nothing.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatBytes } from '../../../domain/units.ts';
import { type Inspection, inspectDatabase } from '../../../store/data-dir/inspect.ts';
import { isHeld } from '../../../store/data-dir/lock.ts';
import { faultMessage } from '../../../store/engine/engine.ts';
import { cipherWarning } from '../../compose/components.ts';
import { spaceLeft } from '../../compose/installation-state.ts';
import { missingCertificate } from '../../config/certificates.ts';
import type { Config } from '../../config/index.ts';
import { askReadiness } from '../ask-service.ts';
import { checkDatabase } from '../files.ts';
import { auditKeysOf, checkBackups } from './backup-findings.ts';
import { checkConfig, type InspectOptions, inspect } from './check.ts';
import { type Finding, findingOf, ok, warn, wrong } from './findings.ts';
import { checkClients, judgeClusters, judgeTrail } from './surroundings.ts';

const mebibyte = 2 ** 20;
const startMs = 5_000;

export function doctor(options: InspectOptions): Promise<number> {
  return inspect('installation', options, findings, isHeld);
}

async function* findings(file: string, config: Config, ports: readonly Finding[]): AsyncGenerator<Finding> {
  const { dataDir } = config;
  const service = await checkService(config);
  const isRunning = isHeld(dataDir);
  yield* checkConfig(file, config, ports, { deeper: { isRunning } });
  yield service;
  yield* checkSpace(dataDir);
  yield* checkClients(dataDir);
  yield* checkSynchronized();
  const slow = cipherWarning();
  if (slow !== undefined) yield warn('ciphers', slow);
  if (config.database !== undefined) return;
  yield* checkBackups(config);
  const database = join(dataDir, 'andromeda.db');
  if (!existsSync(database)) return yield warn('database', `There is none in ${dataDir} yet.`);
  if ([...checkDatabase(dataDir, { unchanged: false })].some(({ verdict }) => verdict === 'wrong')) return;
  yield* examine(database);
  yield* checkClusters(database, isRunning);
}

async function* checkClusters(file: string, isRunning: boolean): AsyncGenerator<Finding> {
  using database = inspectDatabase(file);
  try {
    if (database.versionFault() === undefined) yield* judgeClusters(await database.clusterSides(), isRunning);
  } catch (error) {
    if (faultMessage(error) === undefined) throw error;
    // Another check has reported the damage.
  }
}

/** Checks a running service: it answers, and from this data directory. */
async function checkService(config: Config): Promise<Finding> {
  const about = 'service';
  const { dataDir, platform } = config;
  const waits = platform.tls !== undefined && missingCertificate(config) !== undefined;
  const at = `${platform.listen.host} port ${platform.listen.port}`;
  const deadline = performance.now() + startMs;
  let answer = await askReadiness(platform);
  while (!answer && !waits && isHeld(dataDir) && performance.now() < deadline) {
    await sleep(500);
    answer = await askReadiness(platform);
  }
  if (answer?.obstacle !== undefined)
    return wrong(about, `The one at ${at} is not ready: ${answer.obstacle}`);
  if (waits && isHeld(dataDir))
    return wrong(about, `It runs, and nobody can connect to it at ${at} until it has its certificate.`);
  if (isHeld(dataDir))
    return answer
      ? ok(about, `It is ready, at ${at}.`)
      : wrong(
          about,
          `One holds ${dataDir}, and does not answer at ${at}. It starts or ends, or hangs: look at its log, and restart it.`,
        );
  return answer
    ? wrong(
        about,
        `The one at ${at} does not use ${dataDir} as it is now. Was that moved or removed? Stop the service, and bring its files back or restore a backup (\`andromeda restore\`).`,
      )
    : ok(about, `None runs from ${dataDir}.`);
}

function* checkSpace(dataDir: string): Generator<Finding> {
  if (!existsSync(dataDir)) return;
  const { text, problem } = spaceLeft(dataDir);
  yield problem ? findingOf('disk', problem) : ok('disk', text);
  const wal = statSync(join(dataDir, 'andromeda.db-wal'), { throwIfNoEntry: false })?.size ?? 0;
  const log = `The database's log (WAL) has ${formatBytes(wal)}`;
  if (wal > 256 * mebibyte)
    yield warn(
      'disk',
      `${log}. Something reads the database without an end; \`fuser ${dataDir}/andromeda.db\` says what.`,
    );
  else yield ok('disk', `${log}.`);
}

/** Checks that this machine's clock is synchronized, where systemd knows. */
function* checkSynchronized(): Generator<Finding> {
  try {
    const args = ['show', '--property=NTPSynchronized', '--value'];
    const answer = execFileSync('timedatectl', args, {
      encoding: 'utf8',
      timeout: 5_000,
      stdio: 'pipe',
    }).trim();
    if (answer === 'yes') yield ok('clock', 'It follows a time server.');
    if (answer === 'no')
      yield warn(
        'clock',
        'It follows no time server (`timedatectl`). Tokens are refused where clocks differ.',
      );
  } catch {
    // There is no systemd to ask.
  }
}

export async function* examine(file: string): AsyncGenerator<Finding> {
  using database = inspectDatabase(file);
  const fault = database.versionFault();
  if (fault !== undefined) return yield wrong('database', fault);
  yield* checkPages(file, database);
  try {
    yield* judgeTrail(await database.auditTrail(), auditKeysOf(dirname(file)));
  } catch (error) {
    const fault = faultMessage(error);
    if (fault === undefined) throw error;
    yield wrong('audit trail', `It cannot be read: ${fault}.`);
  }
}

async function* checkPages(file: string, database: Inspection): AsyncGenerator<Finding> {
  let faults = 0;
  for await (const fault of database.faults()) {
    faults += 1;
    yield wrong('database', `${fault}.`);
  }
  if (faults === 0) yield ok('database', `${file}: every page, index and reference is as it should be.`);
  else
    yield wrong(
      'database',
      `${file} is damaged. Restore a backup (\`andromeda restore\`), and look at the disk.`,
    );
}
