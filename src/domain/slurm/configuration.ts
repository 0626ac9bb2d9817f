/** A cluster's Slurm configuration and its validation rules (contract, "Slurm configuration validation"). */
import { DomainError } from '../error.ts';

/** Every field is optional; one that was never set is absent. Sizes are bytes of UTF-8. */
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

/** The reason that a cluster reports for a configuration that it tried and rejected (docs/decisions/0015). */
export const rejectedReason = 'ConfigurationRejected';

const largestFile = 64 * 1024;
const largestTogether = 256 * 1024;
/** The limit on files of all three fields together: empty files have no size, and each costs time and an inode on every host. */
const mostFiles = 1000;
/** Files in the controller's /etc/slurm that the service writes itself, from the fields made for them. */
const ownFiles: ReadonlySet<string> = new Set(['slurm.conf', 'cgroup.conf', 'gres.conf', 'plugstack.conf']);

/** A broken rule: its message, and the field and file where it is about one. */
export interface ConfigurationFault {
  field?: FileField;
  file?: string;
  message: string;
}

const fileFields = ['prolog', 'epilog', 'controllerEtc'] as const;
type FileField = (typeof fileFields)[number];

const mostFaults = 50;

/**
 * Throws `invalid_scheduler_config`, naming the file, at the first broken rule. The other fields are not validated:
 * the cluster reports their errors.
 */
export function checkSlurmConfiguration(configuration: SlurmConfiguration): void {
  const [first] = configurationFaults(configuration);
  if (first) throw new DomainError('invalid_scheduler_config', first.message);
}

/** Every broken rule, file by file, up to a limit; for too many files, that fault alone. */
export function configurationFaults(configuration: SlurmConfiguration): ConfigurationFault[] {
  const count = fileFields.reduce((sum, field) => sum + Object.keys(configuration[field] ?? {}).length, 0);
  if (count > mostFiles) {
    return [
      {
        message: `prolog, epilog and controllerEtc are ${count} files together; at most ${mostFiles} are taken.`,
      },
    ];
  }
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

/** The configuration without fields that name no file: an empty field means the same as an absent one. */
export function withoutEmptyFields(configuration: SlurmConfiguration): SlurmConfiguration {
  const fields = Object.entries(configuration);
  return Object.fromEntries(fields.filter(([, value]) => typeof value !== 'object' || !isEmpty(value)));
}

function isEmpty(files: object): boolean {
  return Object.keys(files).length === 0;
}

export function changedFields(before: SlurmConfiguration, after: SlurmConfiguration): string[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof SlurmConfiguration>;
  return [...fields].filter((field) => !meansTheSame(before[field], after[field])).sort();
}

type Value = SlurmConfiguration[keyof SlurmConfiguration];

/** Compares two values, ignoring the order in which files are named. */
function meansTheSame(before: Value, after: Value): boolean {
  if (typeof before !== 'object' || typeof after !== 'object') return before === after;
  const names = Object.keys(before);
  return (
    names.length === Object.keys(after).length &&
    names.every((name) => Object.hasOwn(after, name) && before[name] === after[name])
  );
}

export interface ConfigurationChange {
  field: string;
  file?: string;
  change: 'added' | 'changed' | 'removed';
}

/** The changes, up to a limit, and their total number. */
export interface ConfigurationChanges {
  changes: ConfigurationChange[];
  count: number;
}

const mostChanges = 200;

export function configurationChanges(
  before: SlurmConfiguration,
  after: SlurmConfiguration,
): ConfigurationChanges {
  const changes = changedFields(before, after).flatMap((name): ConfigurationChange[] => {
    const field = name as keyof SlurmConfiguration;
    const [old, now] = [before[field], after[field]];
    if (typeof (old ?? now) !== 'object') return [{ field, change: changeOf(old, now) }];
    // Maps, since a file may have the name of a property that every object has.
    const [files, others] = [new Map(Object.entries(old ?? {})), new Map(Object.entries(now ?? {}))];
    return [...new Set([...files.keys(), ...others.keys()])]
      .filter((file) => files.get(file) !== others.get(file))
      .sort()
      .map((file) => ({ field, file, change: changeOf(files.get(file), others.get(file)) }));
  });
  return { changes: changes.slice(0, mostChanges), count: changes.length };
}

function changeOf(before: unknown, after: unknown): ConfigurationChange['change'] {
  if (before === undefined) return 'added';
  return after === undefined ? 'removed' : 'changed';
}

export function partitionNames(lines: string | undefined): Set<string> {
  const found = (lines ?? '').matchAll(/^[ \t]*PartitionName[ \t]*=[ \t]*([^\s#]+)/gim);
  const names = [...found].map(([, name = '']) => name);
  return new Set(names.filter((name) => name.toUpperCase() !== 'DEFAULT'));
}
