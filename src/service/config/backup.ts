/** The `backup` section of the configuration: backups that the service makes by itself. */
import { durationMs } from '../../domain/units.ts';
import { invalid, type NamedFiles } from './named-files.ts';
import { integer, pattern, section, text, type Value } from './schema.ts';
import { leadsInto } from './secret-files.ts';
import { withoutSecrets } from './settings-faults.ts';

export const backupSchema = section(
  {
    every: pattern('^[1-9]\\d{0,3}[mhd]$', 'a number and m, h or d, as 24h'),
    keep: integer(1, 1000),
    to: text,
    after: text,
  },
  ['to'],
);

export type BackupSettings = ReturnType<typeof readBackup>;

export function readBackup(
  { every = '24h', keep = 14, to, after }: Value<typeof backupSchema>,
  { files, dataDir }: { files: NamedFiles; dataDir: string },
) {
  if (/^[a-z][\w+.-]*:/i.test(to))
    throw invalid(
      `backup.to is ${withoutSecrets(to)}; it must be a directory. backup.after can copy what is there to another machine.`,
    );
  const directory = files.at(to);
  if (leadsInto(directory, dataDir))
    throw invalid(`backup.to is ${directory}, which is lost with the data directory; name another place.`);
  return { everyMs: durationMs(every) ?? 86_400_000, keep, to: directory, after };
}
