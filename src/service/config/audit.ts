/** The `audit` section of the configuration: how often the trail is signed, and the file that it is copied to. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import { findHostEntry } from '../../lib/host-ids.ts';
import { invalid, type NamedFiles } from './named-files.ts';
import { duration, section, text, type Value } from './schema.ts';
import { leadsInto } from './secret-files.ts';

const schema = section({ signSeconds: duration('seconds', 1, 86_400), file: text, group: text });
export const auditSchema = { ...schema, dependencies: { group: ['file'] } } as typeof schema;

/** The section, which fits the schema: what `service/audit` is started with. */
export type AuditSettings = ReturnType<typeof readAudit>;

export function readAudit(given: Value<typeof auditSchema> | undefined, files: NamedFiles) {
  const { signSeconds = 60, file, group } = given ?? {};
  return {
    signMs: signSeconds * 1000,
    file: file === undefined ? undefined : files.at(file),
    group: group === undefined ? undefined : groupId(group),
  };
}

function groupId(name: string): number {
  const [, , id] = findHostEntry('group', name) ?? [];
  if (id === undefined)
    throw invalid(`audit.group: this host has no group ${name}. groupadd --system ${name}`);
  return Number(id);
}

/** No file of the service's own ends so. */
const logName = /\.(jsonl|log)$/;

/** Nothing is written for others between the service's own files: lines that are appended to the database destroy it. Throws `invalid_request`. */
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
