/** Where the audit trail is written for others: never between the service's own files. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import type { AuditSettings } from './audit.ts';
import type { RetentionConfig } from './lifetimes.ts';
import { invalid } from './named-files.ts';
import { leadsInto } from './secret-files.ts';

/** No file of the service's own ends so. */
const logName = /\.(jsonl|log)$/;

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
  const refuse = (name: string, path: string, cure: string) => {
    throw invalid(file, `${name} is ${path}, within the data directory ${dataDir}; ${cure}.`);
  };
  if (exportTo !== undefined && leadsInto(exportTo, dataDir))
    refuse('retention.exportTo', exportTo, 'name another place');
  const trail = audit.file;
  if (trail !== undefined && leadsInto(trail, dataDir) && !logName.test(realPath(trail)))
    refuse('audit.file', trail, 'name another place, or a file that ends in .jsonl or .log');
  if (exportTo !== undefined && statSync(exportTo, { throwIfNoEntry: false })?.isDirectory() === false)
    throw invalid(file, `retention.exportTo is ${exportTo}, which is no directory.`);
}

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}
