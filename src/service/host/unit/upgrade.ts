/**
 * `andromeda service upgrade` puts this program in the place of the one that the unit runs, with the units of its version, and goes
 * back where it does not serve; `andromeda service rollback` goes back later. Both may be killed at any point, and run again. At
 * every instant there is a program; the newer one may have the units of before or a database of before, never the other way round.
 */
import { spawnSync } from 'node:child_process';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import manifest from '../../../../package.json' with { type: 'json' };
import { DomainError } from '../../../domain/error.ts';
import { messageOf } from '../../../lib/error-message.ts';
import { isOneFile, programFile } from '../../../lib/packaging.ts';
import type { WrittenSince } from '../../../store/data-dir/before-upgrade.ts';
import { readConfig } from '../../config/index.ts';
import { askReadiness } from '../ask-service.ts';
import { refusal, runCommand } from '../installation.ts';
import {
  type Before,
  completeUpgrade,
  findBefore,
  findBegun,
  forget,
  forgetAll,
  installProgram,
  isSame,
  keepProgram,
  noteLost,
  putBackUnits,
} from './program-before.ts';
import { askSchema } from './schema-process.ts';
import { updateService } from './service.ts';
import { unitDirectory, unitNames } from './service-unit.ts';
import { type InstalledService, installedService, isStarted, systemctl, unit } from './systemd.ts';
import { lossText, requireNothingDone, wayBack } from './way-back.ts';

/** Time limit for `/readyz` to succeed (it also wants the gateway) after the service has notified systemd that it is ready. */
const readyMs = 120_000;
const pollMs = 200;
const units = unitNames.map((name) => join(unitDirectory, name));

/** Resolves to the exit status: 0 where this program serves. */
export async function upgradeService(): Promise<number> {
  return runCommand(async () => {
    const service = requireService();
    const { program } = service;
    if (!isOneFile) throw refusal('This is a checkout. Run the executable that `npm run build` makes.');
    const kept = findBefore(program);
    // A way back that was interrupted, or an upgrade before it changed anything.
    const isBack = kept !== undefined && isSame(kept.program, program);
    let begun = isBack ? undefined : findBegun(program);
    if (!isSame(programFile, program)) {
      if (begun)
        throw refusal(
          `${program} is of an upgrade from ${begun.version} that was interrupted. First \`andromeda service upgrade\`, which ends it, or \`andromeda service rollback\`.`,
        );
      begun = installThis(service, isBack && kept.wasStarted);
    }
    if (!begun) return `${program} is ${manifest.version} already. Nothing was changed.\n`;
    return finish(service, begun);
  });
}

/** Resolves to the exit status: 0 where the version of before serves. */
export async function rollbackService(): Promise<number> {
  return runCommand(async () => {
    const service = requireService();
    const before = findBefore(service.program);
    if (!before)
      throw refusal(
        'There is no upgrade to go back from: none was made here, or it was gone back from already.',
      );
    const { database, fault } = await goBack(service, before, { mayLose: true });
    if (fault !== undefined)
      throw refusal(
        `${service.program} is ${before.version} again, and does not serve: ${fault} \`journalctl -u ${unit}\` says why.`,
      );
    forgetAll(service.program);
    const state = before.wasStarted
      ? `The service is ${before.version} again.`
      : notRunning(service, before.version);
    return `${state}${database}\n`;
  });
}

/** Keeps what is there, and puts this program in its place. The service does not notice yet. */
function installThis({ program, config }: InstalledService, wasStarted: boolean): Before {
  const fresh = `${program}.next`;
  try {
    // The account of the service has to reach it.
    installProgram(programFile, fresh);
    requireUsable(fresh, config);
    const { schema } = askSchema(config, 'inspect');
    const note = { version: versionOf(program), schema, wasStarted: wasStarted || isStarted() };
    const before = keepProgram(program, units, note);
    renameSync(fresh, program);
    return before;
  } finally {
    rmSync(fresh, { force: true });
  }
}

async function finish(service: InstalledService, before: Before): Promise<string> {
  const { program } = service;
  updateService(service);
  systemctl('daemon-reload');
  const fault = before.wasStarted ? await startAgain(service) : undefined;
  if (fault !== undefined) throw await undone(service, before, fault);
  completeUpgrade(program, before);
  if (!before.wasStarted) return `${notRunning(service, manifest.version)}\n`;
  return `The service is ${manifest.version} now; it was ${before.version}. Open SSH sessions went on. \`andromeda service rollback\` goes back.\n`;
}

/** Goes back from a program that does not serve, unless people have written something meanwhile. What to say of it. */
async function undone(service: InstalledService, before: Before, fault: string): Promise<DomainError> {
  const why = `\`journalctl -u ${unit}\` says why.`;
  const failed = `${manifest.version} did not serve: ${fault}`;
  try {
    const back = await goBack(service, before, { mayLose: false });
    if (back.fault === undefined) forget(before.directory);
    const state =
      back.fault === undefined ? 'and the service runs it' : `which does not serve either: ${back.fault}`;
    return refusal(
      `${failed} ${service.program} is ${before.version} again, ${state}.${back.database} ${why}`,
    );
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return refusal(`${failed} It stays: ${error.message} ${why}`);
  }
}

interface Back {
  /** What became of the database, as a sentence behind others. */
  database: string;
  /** Why the version of before does not serve; undefined: it does, or is not to. */
  fault: string | undefined;
}

/** `mayLose`: also where what people have written since is lost. Throws a `DomainError` where it cannot, and then nothing has changed. */
async function goBack(
  service: InstalledService,
  before: Before,
  { mayLose }: { mayLose: boolean },
): Promise<Back> {
  const kept = ' The database is as it is: nothing is lost.';
  let database = await bringBackDatabase(service, before, mayLose);
  if (putBackUnits(before, units)) systemctl('daemon-reload');
  if (!isSame(before.program, service.program)) installProgram(before.program, service.program);
  let fault = before.wasStarted ? await startAgain(service) : undefined;
  if (fault !== undefined && database === undefined) {
    // The newer program can have changed it at its very end.
    database = await bringBackDatabase(service, before, mayLose);
    if (database !== undefined) fault = await startAgain(service);
  }
  return { database: database ?? kept, fault };
}

/** Puts the copy of before in the database's place where the schema is another. Returns what became of it; undefined: nothing. */
async function bringBackDatabase(
  service: InstalledService,
  before: Before,
  mayLose: boolean,
): Promise<string | undefined> {
  const { config } = service;
  const { schema } = before;
  const present = askSchema(config, 'inspect', schema);
  if (wayBack(before, present) === 'as it is' || schema === undefined) {
    // A way back that was interrupted had put the copy there.
    if (before.lost) process.stdout.write(lossText(before.lost));
    return before.lost && copyText(before.lost);
  }
  if (present.written && !mayLose) requireNothingDone(present.written);
  const wasStarted = isStarted();
  systemctl('stop', unit);
  try {
    const lost = askSchema(config, 'compare', schema);
    if (!mayLose) requireNothingDone(lost);
    process.stdout.write(lossText(lost));
    noteLost(before, lost);
    askSchema(config, 'restore', schema);
    return copyText(lost);
  } catch (error) {
    if (!wasStarted) throw error;
    const fault = await startAgain(service);
    if (!(error instanceof DomainError)) throw error;
    const state =
      fault === undefined
        ? 'was started again and serves'
        : `was started again, and does not serve: ${fault}`;
    throw refusal(`${error.message} The service was stopped, which ended SSH sessions; it ${state}.`);
  }
}

function copyText({ madeAt }: WrittenSince): string {
  return ` The database is that of ${madeAt}; the newer one is in before-restore-… beside it, to be removed when all is well.`;
}

/** Starts what is in place, and waits until it serves. Resolves to why it does not. */
async function startAgain({ config }: InstalledService): Promise<string | undefined> {
  try {
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

function notRunning({ program }: InstalledService, version: string): string {
  return `${program} is ${version} now. The service does not run.`;
}
