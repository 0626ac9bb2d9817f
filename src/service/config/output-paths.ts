/** Where the audit trail is written for others: never between the service's own files. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import type { AuditSettings } from './audit.ts';
import { invalid } from './named-files.ts';
import { leadsInto } from './secret-files.ts';

/** No file of the service's own ends so. */
const logName = /\.(jsonl|log)$/;

/** Lines that are appended to the database destroy it. Throws `invalid_request`. */
export function refuseOutputInDataDir({
  dataDir,
  audit: { file },
  retention: { exportTo },
}: {
  dataDir: string;
  audit: Pick<AuditSettings, 'file'>;
  retention: { exportTo?: string };
}): void {
  const within = (name: string, path: string) => `${name} is ${path}, within the data directory ${dataDir}`;
  if (exportTo !== undefined && leadsInto(exportTo, dataDir))
    throw invalid(`${within('retention.exportTo', exportTo)}; name another place.`);
  if (file !== undefined && leadsInto(file, dataDir) && !logName.test(realPath(file)))
    throw invalid(
      `${within('audit.file', file)}; name another place, or a file that ends in .jsonl or .log.`,
    );
  if (exportTo !== undefined && statSync(exportTo, { throwIfNoEntry: false })?.isDirectory() === false)
    throw invalid(`retention.exportTo is ${exportTo}, which is no directory.`);
}

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}
