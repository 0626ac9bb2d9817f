/** The `clusters` section of the configuration: what a lab may do to the service's own host. */
import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { isWithin } from './secret-files.ts';

export interface ClusterConfig {
  /** What a lab that comes over the API may name as files; `directory` is undefined where there is no safe default. */
  secrets: { directory: string | undefined; never: readonly string[] };
  /** Clusters that a lab which comes over the API may describe with `local: true`. */
  allowLocal: readonly string[];
  /** Whether a lab that comes over the API may have simulated login nodes, which run here, where the service is root. */
  allowSimulated: boolean;
  /** Whether simulated login nodes are wanted whose sessions are not kept apart from the service, as without root. */
  unsafeSimulatedLogins: boolean;
}

export interface RawClusters {
  secretsDir?: string;
  allowLocal?: string[];
  allowSimulated?: boolean;
  unsafeSimulatedLogins?: boolean;
}

export const clustersSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    secretsDir: { type: 'string', minLength: 1 },
    allowLocal: { type: 'array', items: { type: 'string', minLength: 1 } },
    allowSimulated: { type: 'boolean' },
    unsafeSimulatedLogins: { type: 'boolean' },
  },
};

/**
 * The section with its defaults: labs may name files in the directory of the configuration, where an operator's lab file is
 * too, but never in the data directory, nor the files of the configuration itself (`own`). There is no default where that
 * directory also has secrets of other programs. Throws `invalid_request` for a directory in the data directory.
 */
export function readClusters(
  raw: RawClusters = {},
  { file, dataDir, own }: { file: string; dataDir: string; own: readonly string[] },
): ClusterConfig {
  const beside = dirname(file);
  if (raw.secretsDir !== undefined && isWithin(resolve(beside, raw.secretsDir), dataDir)) {
    throw new DomainError(
      'invalid_request',
      `${file}: clusters.secretsDir is in the data directory, of which a lab may name nothing. Give another.`,
    );
  }
  const isShared = ['/', '/etc', '/root', homedir()].includes(beside);
  const usual = isShared ? undefined : beside;
  return {
    secrets: {
      directory: raw.secretsDir === undefined ? usual : resolve(beside, raw.secretsDir),
      never: [dataDir, ...own],
    },
    allowLocal: raw.allowLocal ?? [],
    allowSimulated: raw.allowSimulated ?? false,
    unsafeSimulatedLogins: raw.unsafeSimulatedLogins ?? false,
  };
}
