/** The storage that the configuration names; each kind is loaded where it is used. */
import type { BackupStorage, StorageSettings } from './storage.ts';

/** `workDir`: of the data directory, for what has to be known after a crash. */
export async function openStorage(settings: StorageSettings, workDir: string): Promise<BackupStorage> {
  return 'directory' in settings
    ? (await import('./directory.ts')).openDirectory(settings.directory)
    : (await import('./s3.ts')).openBucket(settings, { workDir });
}
