/** A cluster's Slurm configuration and what it must keep to (contract, "Slurm configuration validation"). */
import { DomainError } from './error.ts';

/** Every field is optional; one that was never set is left out. Sizes are bytes of UTF-8. */
export interface SlurmConfiguration {
  slurmPartitions?: string;
  slurmExtraConfig?: string;
  cgroupExtraConfig?: string;
  gresConf?: string;
  prolog?: Readonly<Record<string, string>>;
  epilog?: Readonly<Record<string, string>>;
  controllerEtc?: Readonly<Record<string, string>>;
  loginS6Packages?: string;
  computeS6Packages?: string;
}

const largestFile = 64 * 1024;
const largestTogether = 256 * 1024;
/** What the service writes into the controller's /etc/slurm itself, from the fields made for it. */
const ownFiles: ReadonlySet<string> = new Set(['slurm.conf', 'cgroup.conf', 'gres.conf', 'plugstack.conf']);

/** Where a rule is broken, as far as it is one place, and which, for people. */
export interface ConfigurationFault {
  field?: FileField;
  file?: string;
  message: string;
}

const fileFields = ['prolog', 'epilog', 'controllerEtc'] as const;
type FileField = (typeof fileFields)[number];

const mostFaults = 50;

/**
 * Throws `invalid_scheduler_config`, naming the file, at the first rule that is broken. The other fields are not
 * looked at: what is wrong in them shows on the cluster.
 */
export function checkSlurmConfiguration(configuration: SlurmConfiguration): void {
  const [first] = configurationFaults(configuration);
  if (first) throw new DomainError('invalid_scheduler_config', first.message);
}

/** Every rule that is broken, file by file, up to a bound. */
export function configurationFaults(configuration: SlurmConfiguration): ConfigurationFault[] {
  const faults: ConfigurationFault[] = [];
  let together = 0;
  for (const field of fileFields) {
    for (const [file, text] of Object.entries(configuration[field] ?? {})) {
      const message = faultOfFile(field, file, text);
      if (message !== undefined) faults.push({ field, file, message });
      together += Buffer.byteLength(text);
    }
  }
  if (together > largestTogether) {
    faults.push({
      message: `prolog, epilog and controllerEtc together are ${together} bytes; at most 256 KiB (${largestTogether}) are taken.`,
    });
  }
  return faults.slice(0, mostFaults);
}

function faultOfFile(field: FileField, name: string, text: string): string | undefined {
  const file = `The ${field} file ${JSON.stringify(name)}`;
  if (!/^[A-Za-z0-9._-]+$/.test(name)) {
    return `${file}: a file name contains only letters, digits, "-", "_" and ".".`;
  }
  if (name === '.' || name === '..' || name.length > 255) return `${file}: no file can have this name.`;
  if (field === 'controllerEtc' && ownFiles.has(name)) {
    return `${file} is made from the other fields; it cannot be given.`;
  }
  if (field !== 'controllerEtc' && !text.startsWith('#!')) return `${file}: a script starts with "#!".`;
  const size = Buffer.byteLength(text);
  if (size <= largestFile) return undefined;
  return `${file} is ${size} bytes; at most 64 KiB (${largestFile}) are taken.`;
}

/** A configuration without fields that name no file: those mean what their absence does. */
export function withoutEmptyFields(configuration: SlurmConfiguration): SlurmConfiguration {
  const fields = Object.entries(configuration);
  return Object.fromEntries(fields.filter(([, value]) => typeof value !== 'object' || !isEmpty(value)));
}

function isEmpty(files: object): boolean {
  return Object.keys(files).length === 0;
}

/** The names of the fields in which two configurations differ; none when they mean the same. */
export function changedFields(before: SlurmConfiguration, after: SlurmConfiguration): string[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof SlurmConfiguration>;
  return [...fields].filter((field) => canonical(before[field]) !== canonical(after[field])).sort();
}

/** The order in which files are named means nothing. */
function canonical(value: SlurmConfiguration[keyof SlurmConfiguration]): string {
  if (typeof value !== 'object') return JSON.stringify(value) ?? '';
  return JSON.stringify(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A field or, of a field of files, one file, and what becomes of it. */
export interface ConfigurationChange {
  field: string;
  file?: string;
  change: 'added' | 'changed' | 'removed';
}

const mostChanges = 200;

/** How a configuration differs from another, field by field and file by file, up to a bound. */
export function configurationChanges(
  before: SlurmConfiguration,
  after: SlurmConfiguration,
): ConfigurationChange[] {
  const changes = changedFields(before, after).flatMap((name): ConfigurationChange[] => {
    const field = name as keyof SlurmConfiguration;
    const [old, now] = [before[field], after[field]];
    if (typeof (old ?? now) !== 'object') return [{ field, change: changeOf(old, now) }];
    const [files, others] = [old ?? {}, now ?? {}] as [Record<string, string>, Record<string, string>];
    return [...new Set([...Object.keys(files), ...Object.keys(others)])]
      .filter((file) => files[file] !== others[file])
      .sort()
      .map((file) => ({ field, file, change: changeOf(files[file], others[file]) }));
  });
  return changes.slice(0, mostChanges);
}

function changeOf(before: unknown, after: unknown): ConfigurationChange['change'] {
  if (before === undefined) return 'added';
  return after === undefined ? 'removed' : 'changed';
}

/** The partitions that lines of slurm.conf define. */
export function partitionNames(lines: string | undefined): string[] {
  const names = [...(lines ?? '').matchAll(/^[ \t]*PartitionName[ \t]*=[ \t]*([^\s#]+)/gim)];
  return [...new Set(names.map(([, name = '']) => name))].filter((name) => name.toUpperCase() !== 'DEFAULT');
}
