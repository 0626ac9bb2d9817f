/** The service as systemd has it, for commands that root types. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { refusal } from '../installation.ts';
import { unitDirectory } from './service-unit.ts';

export interface InstalledService {
  program: string;
  config: string;
  user: string;
}

export const unit = 'andromeda.service';
/** The unit has its own limits for a start and a stop, which are shorter by default. */
const limitMs = 1_800_000;

/** Throws `invalid_state` where systemd has no service that `service install` made. */
export function installedService(): InstalledService {
  const [, program = '', config] =
    /path=(.+?) ; argv\[\]=.+? serve --config (.+?) ;/.exec(show('ExecStart')) ?? [];
  if (config === undefined || !existsSync(program))
    throw refusal('systemd has no service of ours here. `andromeda service install` makes one.');
  const file = show('FragmentPath');
  if (file !== join(unitDirectory, unit))
    throw refusal(
      `${file} is of a package of the system. Upgrade the package, or install the one of before.`,
    );
  return { program, config, user: show('User') };
}

export function isStarted(): boolean {
  return ['active', 'activating', 'reloading'].includes(show('ActiveState'));
}

/** Does what it is asked, and waits for it. Throws `invalid_state` with what systemd said. */
export function systemctl(...args: string[]): string {
  return run('systemctl', args);
}

/** Runs a program of the system. Resolves to its output. Throws `invalid_state` with what it said. */
export function run(program: string, args: readonly string[]): string {
  const path = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin:/usr/bin:/bin`;
  const options = { encoding: 'utf8', timeout: limitMs, env: { ...process.env, PATH: path } } as const;
  const { status, stdout, stderr, error } = spawnSync(program, args, options);
  if (status === 0) return stdout.trim();
  const output = stderr
    ?.trim()
    .replaceAll(/\.?\s*\n\s*/g, '; ')
    .replace(/\.$/, '');
  const reason = error?.message ?? (output || `status ${status}`);
  throw refusal(`\`${program} ${args.join(' ')}\` did not work: ${reason}.`);
}

function show(property: string): string {
  return systemctl('show', '--property', property, '--value', unit);
}
