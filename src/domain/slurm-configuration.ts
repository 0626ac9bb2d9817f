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

/**
 * Throws `invalid_scheduler_config`, naming the file, at the first rule that is broken. The other fields are not
 * looked at: what is wrong in them shows on the cluster.
 */
export function checkSlurmConfiguration(configuration: SlurmConfiguration): void {
  let together = 0;
  for (const field of ['prolog', 'epilog', 'controllerEtc'] as const) {
    for (const [name, text] of Object.entries(configuration[field] ?? {})) {
      checkFile(field, name, text);
      together += Buffer.byteLength(text);
    }
  }
  if (together > largestTogether) {
    throw invalid(
      `prolog, epilog and controllerEtc together are ${together} bytes; at most 256 KiB (${largestTogether}) are taken.`,
    );
  }
}

function checkFile(field: 'prolog' | 'epilog' | 'controllerEtc', name: string, text: string): void {
  const file = `${field} file ${JSON.stringify(name)}`;
  if (!/^[A-Za-z0-9._-]+$/.test(name)) {
    throw invalid(`The ${file}: a file name contains only letters, digits, "-", "_" and ".".`);
  }
  if (name === '.' || name === '..' || name.length > 255) {
    throw invalid(`The ${file}: no file can have this name.`);
  }
  if (field === 'controllerEtc' && ownFiles.has(name)) {
    throw invalid(`The ${file} is made from the other fields; it cannot be given.`);
  }
  if (field !== 'controllerEtc' && !text.startsWith('#!')) {
    throw invalid(`The ${file}: a script starts with "#!".`);
  }
  const size = Buffer.byteLength(text);
  if (size > largestFile) {
    throw invalid(`The ${file} is ${size} bytes; at most 64 KiB (${largestFile}) are taken.`);
  }
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

function invalid(message: string): DomainError {
  return new DomainError('invalid_scheduler_config', message);
}
