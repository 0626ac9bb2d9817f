/**
 * `andromeda service upgrade` replaces the program that the unit runs by this one, and restores the former where this one
 * does not serve; `andromeda service rollback` restores it later. Both may be killed at any point, and after which either of
 * them ends well. At every instant a program is in place, and makes its units itself, as `andromeda service install` does.
 */
import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import manifest from '../../../../package.json' with { type: 'json' };
import { DomainError } from '../../../domain/error.ts';
import { messageOf } from '../../../lib/error-message.ts';
import { isOneFile, programFile } from '../../../lib/packaging.ts';
import { flush, writeWhole } from '../../../lib/whole-file.ts';
import type { WrittenSince } from '../../../store/data-dir/before-upgrade.ts';
import { readConfig } from '../../config/index.ts';
import { askReadiness } from '../ask-service.ts';
import { refusal, runCommand } from '../installation.ts';
import { askSchema, type SchemaState } from './schema-process.ts';
import { type InstalledService, installedService, isStarted, run, systemctl, unit } from './service-unit.ts';

/** Timeout for `/readyz` to succeed (it also wants the gateway) after the service has notified systemd that it is ready. */
const readyMs = 120_000;
const pollMs = 200;

export async function upgradeService(): Promise<number> {
  return runCommand(async () => {
    const service = requireService();
    const { program } = service;
    if (!isOneFile) throw refusal('This is a checkout. Run the executable that `npm run build` makes.');
    const found = readState(program);
    const begun = found?.isUnderWay ? found : undefined;
    if (begun && isSame(programFile, programBefore(program))) return endRollback(service, begun);
    if (!isSame(programFile, program)) return finish(service, installThis(service, begun));
    if (!begun) return `${program} is ${manifest.version} already. Nothing was changed.\n`;
    return finish(service, begun);
  });
}

export async function rollbackService(): Promise<number> {
  return runCommand(() => {
    const service = requireService();
    const state = readState(service.program);
    if (!state)
      throw refusal(
        'There is no upgrade to go back from: none was made here, or it was gone back from already.',
      );
    return endRollback(service, { ...state, wasStarted: state.wasStarted || isStarted() });
  });
}

/**
 * Puts this program in place, which the service does not notice yet. `begun`: the state of an interrupted upgrade or
 * rollback, to which this one can also go back.
 */
function installThis({ program, config }: InstalledService, begun: UpgradeState | undefined): UpgradeState {
  const fresh = `${program}.next`;
  try {
    // The account of the service must be able to run it.
    installProgram(programFile, fresh);
    requireUsable(fresh, config);
    const state = begun ?? {
      version: versionOf(program),
      schema: askSchema(config, 'inspect').schema,
      wasStarted: isStarted(),
      isUnderWay: true,
    };
    if (!begun) keepProgram(program, state);
    renameSync(fresh, program);
    return state;
  } finally {
    rmSync(fresh, { force: true });
  }
}

async function finish(service: InstalledService, state: UpgradeState): Promise<string> {
  const { program, config } = service;
  const { version, wasStarted, schema, lost } = state;
  const isOnCopy = lost !== undefined && askSchema(config, 'inspect').schema === schema;
  const fault = await takeUp(service, wasStarted);
  if (fault !== undefined) throw await undone(service, state, fault);
  writeState(program, { ...state, isUnderWay: false, lost: undefined });
  const serves = `The service is ${manifest.version} now; it was ${version}. Open SSH sessions went on. \`andromeda service rollback\` goes back.`;
  return `${wasStarted ? serves : notRunning(program, manifest.version)}${isOnCopy ? copyText(lost) : ''}\n`;
}

/** Goes back from a program that does not serve, unless people have written something meanwhile. Returns the report. */
async function undone(service: InstalledService, state: UpgradeState, fault: string): Promise<DomainError> {
  const { program } = service;
  const { version } = state;
  const why = `\`journalctl -u ${unit}\` says why.`;
  const failed = `${manifest.version} did not serve: ${fault}`;
  try {
    const back = await goBack(service, state, { mayLose: false });
    if (back.fault !== undefined)
      return refusal(
        `${failed} ${program} is ${version} again, which does not serve either: ${back.fault}${back.database} ${why}`,
      );
    forgetState(program);
    return refusal(
      `${failed} ${program} is ${version} again, and the service runs it.${back.database} ${why}`,
    );
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return refusal(`${failed} It stays: ${error.message} ${why}`);
  }
}

async function endRollback(service: InstalledService, state: UpgradeState): Promise<string> {
  const { program } = service;
  const { version, wasStarted } = state;
  const { database, fault } = await goBack(service, state, { mayLose: true });
  if (fault !== undefined)
    throw refusal(
      `${program} is ${version} again, and does not serve: ${fault} \`journalctl -u ${unit}\` says why.`,
    );
  forgetState(program);
  return `${wasStarted ? `The service is ${version} again.` : notRunning(program, version)}${database}\n`;
}

/**
 * `mayLose`: also where that loses what people have written since. Resolves to a sentence about the database, and the reason why
 * the former version does not serve, if it should. Throws a `DomainError` where it cannot go back, and then nothing has changed.
 */
async function goBack(service: InstalledService, given: UpgradeState, { mayLose }: { mayLose: boolean }) {
  const { program, config, user } = service;
  const before = programBefore(program);
  // The former version may not know newer settings of the configuration.
  run(before, ['service', 'print', '--config', config, '--user', user]);
  let state = await bringBackDatabase(service, given, mayLose);
  if (!isSame(before, program)) installProgram(before, program);
  let fault = await takeUp(service, state.wasStarted);
  if (fault !== undefined && !state.lost) {
    // The newer program may have changed the database just before it stopped.
    state = await bringBackDatabase(service, state, mayLose);
    if (state.lost) fault = await takeUp(service, state.wasStarted);
  }
  const { lost } = state;
  return { database: lost ? copyText(lost) : ' The database is as it is: nothing is lost.', fault };
}

/** Restores the copy of the database where the former version does not accept the present one. Returns the state that is written then. */
async function bringBackDatabase(
  service: InstalledService,
  given: UpgradeState,
  mayLose: boolean,
): Promise<UpgradeState> {
  const { program, config } = service;
  const { schema } = given;
  const findLoss = () => {
    const loss = lossOf(given, askSchema(config, 'inspect', schema));
    if (loss && !mayLose) requireNothingDone(loss);
    return loss;
  };
  const state = { ...given, isUnderWay: true };
  const isAsItIs = findLoss() === undefined;
  writeState(program, state);
  if (isAsItIs) {
    // An interrupted rollback had already restored the copy.
    if (state.lost) process.stdout.write(lossText(state.lost));
    return state;
  }
  const wasStarted = isStarted();
  systemctl('stop', unit);
  try {
    // Once more, for writes until the service had stopped.
    state.lost = findLoss();
    if (state.lost) process.stdout.write(lossText(state.lost));
    writeState(program, state);
    askSchema(config, 'restore', schema);
    return state;
  } catch (error) {
    if (!wasStarted) throw error;
    const fault = await takeUp(service, true);
    if (!(error instanceof DomainError)) throw error;
    const end =
      fault === undefined
        ? 'was started again and serves'
        : `was started again, and does not serve: ${fault}`;
    throw refusal(`${error.message} The service was stopped, which ended SSH sessions; it ${end}.`);
  }
}

function copyText({ madeAt }: WrittenSince): string {
  return ` The database is that of ${madeAt}; the newer one is in before-restore-… beside it, to be removed when all is well.`;
}

/** Has the program in place make its units, starts it if `isToRun`, and waits until it serves. Resolves to the reason if it does not. */
async function takeUp(
  { program, config, user }: InstalledService,
  isToRun: boolean,
): Promise<string | undefined> {
  try {
    run(program, ['service', 'install', '--no-enable', '--config', config, '--user', user]);
    if (!isToRun) return undefined;
    systemctl('reset-failed', unit);
    systemctl('restart', unit);
    const deadline = performance.now() + readyMs;
    const { business } = readConfig(config);
    for (;;) {
      const answer = await askReadiness(business);
      if (answer && answer.obstacle === undefined) return undefined;
      if (performance.now() > deadline) return answer?.obstacle ?? 'Nothing answers.';
      await sleep(pollMs);
    }
  } catch (error) {
    return messageOf(error);
  }
}

function requireService(): InstalledService {
  if (process.getuid?.() !== 0) throw refusal('This changes the system; run it as root.');
  return installedService();
}

function versionOf(program: string): string {
  const { status, stdout } = spawnSync(program, ['version'], { encoding: 'utf8', timeout: 60_000 });
  const version = /^andromeda (.+)/.exec(stdout ?? '')?.[1];
  if (status === 0 && version !== undefined) return version.trim();
  throw refusal(`\`${program} version\` does not answer as this program does. Nothing was changed.`);
}

function requireUsable(program: string, config: string): void {
  const args = ['check', '--quiet', '--config', config];
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: 120_000 });
  if (status !== 0)
    throw refusal(`This program cannot use ${config}. Nothing was changed.\n${stdout}${stderr}`.trimEnd());
}

function notRunning(program: string, version: string): string {
  return `${program} is ${version} now. The service does not run.`;
}

/**
 * The loss by restoring the copy of the database, where the former version needs that; undefined where it accepts the
 * database as it is. Throws `invalid_state` where neither is possible.
 */
export function lossOf(
  { version, schema }: Pick<UpgradeState, 'version' | 'schema'>,
  present: SchemaState,
): WrittenSince | undefined {
  if (present.schema === schema) return undefined;
  if (present.isShared) {
    const { oldestServed } = present;
    if (schema !== undefined && oldestServed !== undefined && oldestServed <= schema) return undefined;
    throw refusal(
      `The shared database has a schema that ${version} does not work with, and there is no copy of it here. To go back all the same, stop every server, restore a dump of before (pg_restore) into a new database, and install ${version} by hand. Nothing was changed.`,
    );
  }
  if (present.written) return present.written;
  const copy =
    schema === undefined ? 'there was no database before' : 'the copy of before is gone from before-upgrade/';
  throw refusal(
    `The database has a schema that ${version} does not work with, and ${copy}. Nothing was changed.`,
  );
}

/** Throws `invalid_state` where the trail has actions of people that the copy lacks. */
export function requireNothingDone({ done }: WrittenSince): void {
  if (done > 0)
    throw refusal(
      'The audit trail has entries of what people did since the database was changed. `andromeda service rollback` goes back, and loses them.',
    );
}

function lossText({ madeAt, entries }: WrittenSince): string {
  const rows = entries.map(({ operation, count }) => `  ${count} ${operation}\n`);
  const trail =
    rows.length === 0
      ? 'The audit trail has nothing since; people who signed in since do so again.\n'
      : `What was written since is lost, of the audit trail:\n\n${rows.join('')}\nRevoke again the keys, and remove again the people, that must not get in.\n`;
  return `The upgrade changed the database's schema, so the copy of ${madeAt} takes its place. ${trail}`;
}

/**
 * The state file of an upgrade, `PROGRAM.before.json`, next to the former program, `PROGRAM.before`. A rollback needs
 * both. Other versions read the state file too, so its fields keep their names.
 */
interface UpgradeState {
  version: string;
  /** The last migration of the database then; undefined: there was none. */
  schema?: string | undefined;
  wasStarted: boolean;
  isUnderWay: boolean;
  /** The loss by the restored copy of the database, or by one about to be restored. */
  lost?: WrittenSince | undefined;
}

function programBefore(program: string): string {
  return `${program}.before`;
}

function readState(program: string): UpgradeState | undefined {
  const file = stateFile(program);
  if (!existsSync(file) || !existsSync(programBefore(program))) return undefined;
  return JSON.parse(readFileSync(file, 'utf8')) as UpgradeState;
}

function writeState(program: string, state: UpgradeState): void {
  writeWhole(stateFile(program), JSON.stringify(state), 0o644);
  flush(dirname(program));
}

function keepProgram(program: string, state: UpgradeState): void {
  forgetState(program);
  // A hard link to the same file takes no space.
  linkSync(program, programBefore(program));
  writeState(program, state);
}

function forgetState(program: string): void {
  // Removed first: without it no rollback is begun.
  rmSync(stateFile(program), { force: true });
  rmSync(programBefore(program), { force: true });
}

/** Replaces a program that may be running, by a rename: at every instant there is one. */
export function installProgram(from: string, to: string): void {
  const made = `${to}.new`;
  mkdirSync(dirname(to), { recursive: true, mode: 0o755 });
  rmSync(made, { force: true });
  copyFileSync(from, made);
  chmodSync(made, 0o755);
  flush(made);
  renameSync(made, to);
  flush(dirname(to));
}

function isSame(one: string, other: string): boolean {
  if (statSync(one).size !== statSync(other).size) return false;
  const [first, second] = [one, other].map((file) => hash('sha256', readFileSync(file)));
  return first === second;
}

function stateFile(program: string): string {
  return `${program}.before.json`;
}
