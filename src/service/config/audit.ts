/** The `audit` section of the configuration: how often the trail is signed, and the file that it is copied to. */
import { closeSync, existsSync, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { findHostEntry } from '../../lib/host-ids.ts';
import { invalid, type NamedFiles } from './named-files.ts';
import { duration, section, text, type Value } from './schema.ts';
import { leadsInto } from './secret-files.ts';

const schema = section({ signSeconds: duration('seconds', 1, 86_400), file: text, group: text });
export const auditSchema = { ...schema, dependencies: { group: ['file'] } } as typeof schema;

/** The settings that `service/audit` is started with, from a section that fits the schema. */
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

/** No file of the service itself has such a name. */
const logName = /\.(jsonl|log)$/;

/** Refuses a copy inside or over the service's other files: lines that are appended to the database destroy it. Throws `invalid_request`. */
export function refuseCopyOverOthers({
  dataDir,
  files,
  audit: { file },
}: {
  dataDir: string;
  files: readonly string[];
  audit: Pick<AuditSettings, 'file'>;
}): void {
  if (file === undefined) return;
  if (leadsInto(file, dataDir) && !logName.test(realPath(file)))
    throw invalid(
      `audit.file is ${file}, within the data directory ${dataDir}; name another place, or a file that ends in .jsonl or .log.`,
    );
  if (files.some((own) => leadsInto(file, own)))
    throw invalid(`audit.file is ${file}, a file of the configuration; name another.`);
  if (existsSync(file)) refuseOther(file);
}

/** The beginnings of a trail's lines (`service/audit/copy.ts`). */
const beginnings = ['{"kind":"entry",', '{"kind":"head",'];

function refuseOther(file: string): void {
  if (!statSync(file).isFile()) throw invalid(`audit.file: ${file} is no regular file.`);
  const found = beginningOf(file);
  // A crash can have cut the first line short.
  if (!beginnings.some((one) => found.startsWith(one) || one.startsWith(found)))
    throw invalid(
      `audit.file: ${file} is there already, and does not begin as an audit trail does; name another.`,
    );
}

function beginningOf(file: string): string {
  const bytes = Buffer.alloc(16);
  try {
    const descriptor = openSync(file, 'r');
    readSync(descriptor, bytes);
    closeSync(descriptor);
  } catch {
    // This account may not read it: that of a health check need not.
  }
  return bytes.toString('latin1').replace(/\0+$/, '');
}

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}
