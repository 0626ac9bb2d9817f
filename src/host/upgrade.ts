/**
 * `andromeda service upgrade`: another program in the place of the one that the unit runs, and back again where it does
 * not serve. It is put there by renaming, so at every instant there is one.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type HttpConfig, readConfig } from '../config/index.ts';
import { DomainError } from '../domain/error.ts';
import { askReadiness } from './readiness.ts';
import { runCommand } from './run-command.ts';

export interface UpgradeOptions {
  /** The new program. */
  file: string;
  /** The configuration that the service runs with. */
  config: string;
}

const unit = 'andromeda.service';
/** A large database takes its time to be brought to a new version. */
const limitMs = 120_000;
const pollMs = 200;

/**
 * Checks the new program, puts it in place, reloads the service and waits until it serves; puts the old one back where it
 * does not. Resolves to the exit status.
 */
export async function upgradeService({ file, config }: UpgradeOptions): Promise<number> {
  return runCommand(async () => {
    if (process.getuid?.() !== 0) throw refusal('This changes the system; run it as root.');
    const program = installedProgram();
    const [fresh, old] = [`${program}.new`, `${program}.old`];
    copyFileSync(file, fresh);
    chmodSync(fresh, 0o755);
    try {
      const [before, after] = [versionOf(program), versionOf(fresh)];
      requireUsable(fresh, config);
      rmSync(old, { force: true });
      linkSync(program, old);
      renameSync(fresh, program);
      if (show('ActiveState') !== 'active') return `${program} is ${after} now. The service does not run.\n`;
      await reloadOrRestore(program, old, readConfig(config).business);
      return `The service is ${after} now; it was ${before}. Open SSH sessions went on. The program before is ${old}.\n`;
    } finally {
      rmSync(fresh, { force: true });
    }
  });
}

async function reloadOrRestore(program: string, old: string, api: HttpConfig): Promise<void> {
  const pid = show('MainPID');
  try {
    systemctl('reload', unit);
  } catch (error) {
    // As with the unit of a version that could not reload.
    renameSync(old, program);
    throw error;
  }
  const deadline = performance.now() + limitMs;
  while (performance.now() < deadline && show('MainPID') === pid) {
    const answer = isRunBy(pid, program) ? await askReadiness(api) : undefined;
    if (answer && answer.obstacle === undefined) return;
    await sleep(pollMs);
  }
  const isUntouched = isRunBy(pid, old);
  renameSync(old, program);
  if (!isUntouched) {
    systemctl('reset-failed', unit);
    systemctl('restart', unit);
  }
  throw refusal(
    `${isUntouched ? 'The service did not take the new program.' : 'The new program did not serve.'} ` +
      `${program} is the one before again, and the service runs it. \`journalctl -u ${unit}\` says why.`,
  );
}

/** The program of the unit. */
function installedProgram(): string {
  const program = /path=(.+?) ;/.exec(show('ExecStart'))?.[1];
  if (program && existsSync(program)) return program;
  throw refusal('systemd has no service of ours here. `andromeda service install` makes one.');
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
    throw refusal(`The new program cannot use ${config}. Nothing was changed.\n${stdout}${stderr}`.trimEnd());
}

/** Whether the process runs this very file, and not one that had its name. */
function isRunBy(pid: string, program: string): boolean {
  try {
    const [running, file] = [statSync(`/proc/${pid}/exe`), statSync(program)];
    return running.ino === file.ino && running.dev === file.dev;
  } catch {
    return false;
  }
}

function show(property: string): string {
  return systemctl('show', '--property', property, '--value', unit);
}

function systemctl(...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync('systemctl', args, {
    encoding: 'utf8',
    timeout: 150_000,
  });
  if (status === 0) return stdout.trim();
  throw refusal(`\`systemctl ${args.join(' ')}\` did not work: ${error?.message ?? stderr.trim()}`);
}

function refusal(message: string): DomainError {
  return new DomainError('invalid_state', message);
}
