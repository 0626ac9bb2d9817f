/** How a gateway process is started: as a child with its own lifetime, with as few rights as can be. */
import { type ChildProcess, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { gatewayArguments, inheritedEnvironment, programFile } from '../lib/packaging.ts';
import { type Account, withoutPrivileges } from './privileges.ts';

/** What tells one build of the program from another: the file of the program, as it was when this process started. */
export const ownBuild: string = buildOf(programFile);

/** The command of a gateway process. */
export function gatewayCommand(build: string): string[] {
  return [process.execPath, ...gatewayArguments(), build];
}

/** Starts the process that is to bind the address. `directory`: the descriptor that leads to the service's socket. */
export function launch(options: {
  build: string;
  directory: number;
  account: Account | undefined;
  port: number;
}): ChildProcess {
  const { build, directory, account, port } = options;
  const [program = '', ...args] = withoutPrivileges(gatewayCommand(build), account, port);
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...inheritedEnvironment() };
  // Nothing of the service's own output: whoever waits for its end would wait for this process as well.
  const stdio: ('ignore' | 'pipe' | number)[] = ['ignore', 'ignore', 'pipe', directory];
  return spawn(program, args, { stdio, detached: true, cwd: '/', env });
}

function buildOf(file: string): string {
  const { dev, ino, size, mtimeMs } = statSync(file);
  return [dev, ino, size, Math.round(mtimeMs)].join('-');
}
