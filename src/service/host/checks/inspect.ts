/** How `check` and `doctor` begin, and what they print. */
import { type Config, readConfig } from '../../config/index.ts';
import { findConfig } from '../installation.ts';
import { checkPorts } from '../ports.ts';
import { becomeOwnerOf } from '../unit/account.ts';
import { type Finding, orWrong, printFindings } from './findings.ts';

export interface InspectOptions {
  config?: string;
  quiet: boolean;
  json?: boolean;
}

/** Prints what `examine` finds. Resolves to the exit status: 0 where nothing is wrong. `about`: what a refusal is reported under. */
export function inspect(
  about: string,
  { config: given, quiet, json }: InspectOptions,
  examine: (file: string, config: Config, ports: readonly Finding[]) => AsyncIterable<Finding>,
): Promise<number> {
  async function* findings(): AsyncGenerator<Finding> {
    const file = findConfig(given);
    const config = readConfig(file);
    // As root, before it becomes the account that the service runs as: that one has the ports from systemd.
    const ports = await checkPorts(config);
    becomeOwnerOf(config.dataDir);
    yield* examine(file, readConfig(file), ports);
  }
  return printFindings(orWrong(about, findings()), quiet, json);
}
