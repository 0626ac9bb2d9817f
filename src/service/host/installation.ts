/** Shared by commands on the host: finding their installation, and their exit status. */
import { accessSync, constants, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { commandIo } from '../../lib/command-io.ts';

/** Paths of a configuration when none is given: the current directory, and the target of `service install`. */
const usualConfigs = ['andromeda.yaml', '/etc/andromeda/andromeda.yaml'];

/** The configuration file: the one given, else the first that exists. Throws `invalid_request` where there is none. */
export function findConfig(given: string | undefined, otherwise = ''): string {
  const file = given ?? usualConfigs.find((path) => existsSync(path));
  if (file !== undefined) return file;
  throw new DomainError(
    'invalid_request',
    `Neither ${usualConfigs.join(' nor ')} exists; say which installation it is with --config FILE${otherwise}.`,
  );
}

/** True if a usual configuration exists that the caller may read: people use their clients on the service's host as well. */
export function hasInstallation(): boolean {
  const file = usualConfigs.find((path) => existsSync(path));
  try {
    if (file !== undefined) accessSync(file, constants.R_OK);
    return file !== undefined;
  } catch {
    return false;
  }
}

/**
 * Runs a command and prints the text that it returns. Resolves to the exit status: the command's own, 0 after a text,
 * or 1 for a refusal or a failed system call, which is printed as one sentence. Other exceptions are faults of the
 * program, and are rethrown. `file`: the configuration that was given.
 */
export async function runCommand(
  command: () => Promise<string | number> | string,
  file?: string,
): Promise<number> {
  try {
    const result = await command();
    if (typeof result === 'number') return result;
    commandIo().stdout.write(result);
    return 0;
  } catch (error) {
    if (!(error instanceof DomainError || (error instanceof Error && 'syscall' in error))) throw error;
    commandIo().stderr.write(`andromeda: ${withConfig(error.message, file)}\n`);
    return 1;
  }
}

/** Adds the configuration's path to commands that a sentence advises to run. */
export function withConfig(text: string, file: string | undefined): string {
  if (file === undefined) return text;
  return text.replaceAll(/andromeda admin key new \w+ --yes/g, `$& --config ${resolve(file)}`);
}

export function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

export function refusal(message: string): DomainError {
  return new DomainError('invalid_state', message);
}
