/** Metrics of what an installation consists of, measured when they are asked for: the program, its database, certificates, backups. */
import { statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import manifest from '../../../../package.json' with { type: 'json' };
import { build } from '../../../lib/packaging.ts';
import { readBackupFailure, readLastBackup } from '../../../store/data-dir/last-backup.ts';
import { listCertificates } from '../../config/certificates.ts';
import type { Config } from '../../config/index.ts';
import type { Kinds } from './metric-kinds.ts';

export function measureInstallation({ measured }: Kinds, config: Config): void {
  const { dataDir } = config;
  const file = join(dataDir, 'andromeda.db');
  const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  measured('andromeda_build_info', ['version', 'commit', 'built', 'node'], (gauge) => {
    const { commit = 'checkout', date = '' } = build ?? {};
    gauge.set({ version: manifest.version, commit, built: date, node: process.version }, 1);
  });
  measured('andromeda_database_bytes', [], (gauge) => gauge.set(sizeOf(file)));
  measured('andromeda_database_wal_bytes', [], (gauge) => gauge.set(sizeOf(`${file}-wal`)));
  measured('andromeda_data_free_bytes', [], (gauge) => {
    const { bavail, bsize } = statfsSync(dataDir);
    gauge.set(bavail * bsize);
  });
  measured('andromeda_certificate_end_timestamp_seconds', ['listener'], (gauge) => {
    for (const { setting, endsAt } of listCertificates(config))
      gauge.set({ listener: setting.replace('.tls', '') }, endsAt / 1000);
  });
  measured('andromeda_backup_last_timestamp_seconds', [], (gauge) =>
    gauge.set(Date.parse(readLastBackup(dataDir)?.at ?? '1970-01-01T00:00:00Z') / 1000),
  );
  measured('andromeda_backup_failures', [], (gauge) => gauge.set(readBackupFailure(dataDir)?.failures ?? 0));
}
