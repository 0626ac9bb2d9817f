/** Metrics of what an installation consists of, measured when they are asked for: the program, its database, certificates, backups. */
import { statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Gauge, type Registry } from 'prom-client';
import manifest from '../../../../package.json' with { type: 'json' };
import { build } from '../../../lib/packaging.ts';
import { readBackupFailure, readLastBackup } from '../../../store/data-dir/last-backup.ts';
import { listCertificates } from '../../config/certificates.ts';
import type { Config } from '../../config/index.ts';

export function measureInstallation(registry: Registry, config: Config): void {
  const add = (name: string, help: string, labelNames: string[], measure: (gauge: Gauge) => void) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset();
        measure(this);
      },
    });
  const { dataDir } = config;
  const file = join(dataDir, 'andromeda.db');
  add('andromeda_build_info', 'The program: always 1', ['version', 'commit', 'built', 'node'], (gauge) => {
    const { commit = 'checkout', date = '' } = build ?? {};
    gauge.set({ version: manifest.version, commit, built: date, node: process.version }, 1);
  });
  add('andromeda_database_bytes', 'Size of the database file', [], (gauge) => gauge.set(sizeOf(file)));
  add('andromeda_database_wal_bytes', 'Size of the database’s write-ahead log', [], (gauge) =>
    gauge.set(sizeOf(`${file}-wal`)),
  );
  add('andromeda_data_free_bytes', 'Space left on the disk of the data directory', [], (gauge) => {
    const { bavail, bsize } = statfsSync(dataDir);
    gauge.set(bavail * bsize);
  });
  add(
    'andromeda_certificate_end_timestamp_seconds',
    'When a listener’s TLS certificate ends, in seconds since 1970',
    ['listener'],
    (gauge) => {
      for (const { setting, endsAt } of listCertificates(config))
        gauge.set({ listener: setting.replace('.tls', '') }, endsAt / 1000);
    },
  );
  add(
    'andromeda_backup_last_timestamp_seconds',
    'When the last backup was made, in seconds since 1970; 0 where none was',
    [],
    (gauge) => gauge.set(Date.parse(readLastBackup(dataDir)?.at ?? '1970-01-01T00:00:00Z') / 1000),
  );
  add(
    'andromeda_backup_failures',
    'Backups by themselves that failed since the last that did not',
    [],
    (gauge) => gauge.set(readBackupFailure(dataDir)?.failures ?? 0),
  );
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
