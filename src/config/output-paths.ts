/** Where the audit trail is written for others: never between the service's own files. */
import { statSync } from 'node:fs';
import type { AuditSettings } from './audit.ts';
import type { RetentionConfig } from './lifetimes.ts';
import { invalid } from './named-files.ts';
import { leadsInto } from './secret-files.ts';

/** Lines that are appended to the database destroy it. Throws `invalid_request`. */
export function refuseOutputInDataDir(
  file: string,
  {
    dataDir,
    audit,
    retention,
  }: { dataDir: string; audit: Pick<AuditSettings, 'file'>; retention: RetentionConfig },
): void {
  const { exportTo } = retention;
  for (const [name, path] of [
    ['audit.file', audit.file],
    ['retention.exportTo', exportTo],
  ]) {
    if (path !== undefined && leadsInto(path, dataDir))
      throw invalid(file, `${name} is ${path}, within the data directory ${dataDir}; name another place.`);
  }
  if (exportTo !== undefined && statSync(exportTo, { throwIfNoEntry: false })?.isDirectory() === false)
    throw invalid(file, `retention.exportTo is ${exportTo}, which is no directory.`);
}
