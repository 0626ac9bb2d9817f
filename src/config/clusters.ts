/** The `clusters` section of the configuration: what a lab may do to the service's own host. */
import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import { DomainError } from '../domain/error.ts';
import { isWithin } from './secret-files.ts';

export interface ClusterConfig {
  /** What a lab that comes over the API may name as files; `directory` is undefined where there is no safe default. */
  secrets: { directory: string | undefined; never: readonly string[] };
  /** Clusters that a lab which comes over the API may describe with `local: true`. */
  allowLocal: readonly string[];
  /** Without root, sessions of simulated login nodes run as the service's own account: whether that is wanted. */
  unsafeSimulatedLogins: boolean;
}

export interface RawClusters {
  secretsDir?: string;
  allowLocal?: string[];
  unsafeSimulatedLogins?: boolean;
}

export const clustersSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    secretsDir: { type: 'string', minLength: 1 },
    allowLocal: { type: 'array', items: { type: 'string', minLength: 1 } },
    unsafeSimulatedLogins: { type: 'boolean' },
  },
};

/**
 * The section with its defaults: labs name files beside the configuration, where an operator's lab file stands too, but
 * never the data directory or the files of the configuration itself (`own`). There is no default where the configuration stands
 * among what others keep secret. Throws `invalid_request` for a directory in the data directory.
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
    unsafeSimulatedLogins: raw.unsafeSimulatedLogins ?? false,
  };
}
