/** `andromeda backup` and `andromeda restore`: an installation in one file, on the host itself. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };
import { listConfigFiles, readConfig } from '../config/index.ts';
import { DomainError } from '../domain/error.ts';
import { requireOwner } from '../store/lock.ts';

/** Which installation: its file, or the data directory itself. */
export interface InstallationOptions {
  config?: string;
  data?: string;
}

/** Where a configuration is looked for when none is given: here, and where `service install` puts it. */
const usualConfigs = ['andromeda.yaml', '/etc/andromeda/andromeda.yaml'];

/** Writes a backup. `onProgress` hears how much is done, from 0 to 1. Resolves to the exit status. */
export async function backup(
  file: string,
  options: InstallationOptions,
  waiting: { onProgress(part: number): void; signal: AbortSignal },
): Promise<number> {
  return said(async () => {
    const { dataDir, files } = installationOf(options);
    requireOwner(dataDir);
    const { writeBackup } = await import('../store/backup.ts');
    const from = { madeAt: new Date().toISOString(), version: manifest.version, elsewhere: files };
    const { bytes, missing } = await writeBackup(dataDir, resolve(file), { ...from, ...waiting });
    for (const path of missing) process.stderr.write(`${path} is not in it: it cannot be read.\n`);
    return `${file}: ${(bytes / 2 ** 20).toFixed(1)} MiB, checked. It holds ${dataDir} and the files that the configuration and the clusters
name, keys included: keep it as secret.
`;
  });
}

/** Puts a backup in place. Resolves to the exit status. */
export async function restore(file: string, options: InstallationOptions): Promise<number> {
  return said(async () => {
    const { dataDir } = installationOf(options);
    requireOwner(dataDir);
    const { restoreBackup } = await import('../store/restore.ts');
    const now = new Date().toISOString();
    const { madeAt, version, aside, elsewhere } = restoreBackup(resolve(file), dataDir, now);
    const before =
      aside === undefined ? '' : `What was there before is in ${aside}; remove it when all is well.\n`;
    const list = elsewhere.map((path) => `  ${path}\n`).join('');
    const others =
      list &&
      `\nThese belong elsewhere, and are not there as they were. Put them there, or remove them:\n\n${list}`;
    return `${dataDir} is as it was at ${madeAt}, under Andromeda ${version}.
${before}${others}
Next:

  1. Start the service. It brings the clusters to what the backup says within seconds.
  2. What changed after that time is not in it: revoke again the keys, and remove again the people, that must not get in.
`;
  });
}

function installationOf({ config, data }: InstallationOptions): { dataDir: string; files: string[] } {
  if (data !== undefined) return { dataDir: resolve(data), files: [] };
  const file = config ?? usualConfigs.find((path) => existsSync(path));
  if (file !== undefined) return { dataDir: readConfig(file).dataDir, files: listConfigFiles(file) };
  throw new DomainError(
    'invalid_request',
    `Neither ${usualConfigs.join(' nor ')} exists; say which installation it is with --config FILE, or --data DIR.`,
  );
}

async function said(work: () => Promise<string>): Promise<number> {
  try {
    process.stdout.write(await work());
    return 0;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    process.stderr.write(`andromeda: ${error.message}\n`);
    return 1;
  }
}
