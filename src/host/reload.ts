/**
 * `systemctl reload`: the service starts anew in its own process, with the settings, certificates and program that are on disk.
 * The gateway's processes go on, and with them every session.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { requireCertificates } from '../config/certificates.ts';
import { readConfig } from '../config/index.ts';
import { readLab } from '../config/lab-file.ts';
import { messageOf } from '../lib/error-message.ts';
import { gatewayArguments, selfArguments } from '../lib/packaging.ts';

/** Why the service could not start with what is on disk, in a sentence; undefined when it can as far as can be seen. */
export async function refusalToReload(configFile: string): Promise<string | undefined> {
  try {
    const config = readConfig(configFile);
    requireCertificates(config);
    const { seed } = config;
    if (seed !== undefined) readLab(seed);
  } catch (error) {
    return messageOf(error);
  }
  // It may be another one by now, or half of one.
  const version = [...gatewayArguments().slice(0, -1), 'version'];
  return promisify(execFile)(process.execPath, version, { timeout: 30_000, maxBuffer: 64 * 1024 }).then(
    () => undefined,
    () => `${process.execPath} does not run. Put the program there that the service is to go on with.`,
  );
}

/** Runs the program on disk in place of this one, with the same arguments: the number of the process stays. */
export function replaceProcess(): void {
  process.execve?.(process.execPath, [process.argv0, ...selfArguments()], process.env);
}
