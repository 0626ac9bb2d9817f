/** `andromeda backup` and `andromeda restore`: an installation in one file, on the host itself. */
import { resolve } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };
import { listConfigFiles, readConfig } from '../config/index.ts';
import { requireOwner } from '../store/lock.ts';
import { findConfig } from './installation.ts';
import { runCommand } from './run-command.ts';

/** Which installation: its file, or the data directory itself. */
export interface InstallationOptions {
  config?: string;
  data?: string;
}

/** Writes a backup. `onProgress` is called with how much is done, from 0 to 1. Resolves to the exit status. */
export async function backup(
  file: string,
  options: InstallationOptions,
  waiting: { onProgress(part: number): void; signal: AbortSignal },
): Promise<number> {
  return runCommand(async () => {
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
  return runCommand(async () => {
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
  const file = findConfig(config, ', or --data DIR');
  return { dataDir: readConfig(file).dataDir, files: listConfigFiles(file) };
}
