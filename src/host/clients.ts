/** `andromeda clients`: the clients that the service offers its people, on the host itself. */
import { openSync } from 'node:fs';
import { resolve } from 'node:path';
import { addRelease } from '../clients/release-file.ts';
import { readRelease } from '../clients/store.ts';
import { readConfig } from '../config/index.ts';
import { becomeOwnerOf } from './account.ts';
import { findConfig } from './installation.ts';
import { runCommand } from './run-command.ts';

export interface ClientsOptions {
  config?: string;
  data?: string;
}

/** Takes the clients of a release file in place of those that are offered. Resolves to the exit status. */
export function addClients({ file, ...options }: ClientsOptions & { file: string }): Promise<number> {
  return runCommand(async () => {
    const dataDir = dataDirOf(options);
    // Opened before, for root may read what the service's account may not.
    const descriptor = openSync(file, 'r');
    becomeOwnerOf(dataDir);
    const { version, files } = await addRelease(dataDir, descriptor);
    const names = files.map(({ platform, name }) => `  ${platform.padEnd(13)} ${name}\n`).join('');
    return `The clients of ${version} are offered now, each with the SHA-256 that its release gives:\n${names}`;
  });
}

/** Prints what is offered beside the portable client. Resolves to the exit status. */
export function listClients(options: ClientsOptions): Promise<number> {
  return runCommand(() => {
    const release = readRelease(dataDirOf(options));
    if (!release)
      return 'The portable client alone is offered; `andromeda clients add FILE` adds executables.\n';
    const { version, files } = release;
    const lines = files.map(({ name, bytes, sha256, tested }) => {
      const size = `${(bytes / 2 ** 20).toFixed(1)} MiB`;
      return `${sha256}  ${size.padStart(10)}  ${name}${tested ? '' : '  (not run by whoever released it)'}\n`;
    });
    return `The portable client, and of ${version}:\n${lines.join('')}`;
  });
}

function dataDirOf({ config, data }: ClientsOptions): string {
  return data === undefined ? readConfig(findConfig(config, ' or --data DIR')).dataDir : resolve(data);
}
