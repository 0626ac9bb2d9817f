/** `andromeda clients`: the clients that the service offers its people, on the host itself. */
import { existsSync, openSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { addRelease } from '../clients/release-file.ts';
import { readRelease } from '../clients/store.ts';
import { readConfig } from '../config/index.ts';
import { DomainError } from '../domain/error.ts';
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
    const descriptor = explainErrors(file, () => openRelease(file));
    becomeOwnerOf(dataDir);
    explainErrors(dataDir, () => requireInstallation(dataDir));
    const { version, files } = await addRelease(dataDir, descriptor).catch((error) =>
      explainErrors(join(dataDir, 'clients'), () => {
        throw error;
      }),
    );
    const names = files.map(({ platform, name }) => `  ${platform.padEnd(13)} ${name}\n`).join('');
    return `The clients of ${version} are offered now, each with the SHA-256 that its release gives:\n${names}`;
  });
}

/** Prints what is offered beside the portable client. Resolves to the exit status. */
export function listClients(options: ClientsOptions): Promise<number> {
  return runCommand(() => {
    const dataDir = dataDirOf(options);
    const release = explainErrors(join(dataDir, 'clients'), () => readRelease(dataDir));
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

function openRelease(file: string): number {
  if (statSync(file).isDirectory()) throw refuse(file, 'it is a directory; name a release file');
  return openSync(file, 'r');
}

/** Anything else would be offered to nobody, and look as if it were. */
function requireInstallation(dataDir: string): void {
  if (!statSync(dataDir).isDirectory()) throw refuse(dataDir, 'it is no directory');
  if (!existsSync(join(dataDir, 'andromeda.db')))
    throw refuse(dataDir, 'no installation has its data there; name its data directory, or its --config');
}

const reasons: Record<string, string> = {
  ENOENT: 'it is not there',
  EACCES: 'this account may not use it; run this as root or as the account of the service',
  EPERM: 'this account may not use it; run this as root or as the account of the service',
  ENOTDIR: 'a part of its path is no directory',
  EISDIR: 'it is a directory',
  ENOSPC: 'the disk is full',
  EROFS: 'it cannot be written there',
};

/** What the system says about a path, as a sentence. */
function explainErrors<Result>(path: string, act: () => Result): Result {
  try {
    return act();
  } catch (error) {
    const { code = '', path: where = path } = error as NodeJS.ErrnoException;
    const why = reasons[code];
    throw why === undefined ? error : refuse(where, why);
  }
}

function refuse(path: string, why: string): DomainError {
  return new DomainError('invalid_request', `${path} cannot be used: ${why}.`);
}

function dataDirOf({ config, data }: ClientsOptions): string {
  return data === undefined ? readConfig(findConfig(config, ' or --data DIR')).dataDir : resolve(data);
}
