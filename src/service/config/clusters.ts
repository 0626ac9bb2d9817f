/** The `clusters` section of the configuration: the permissions of a lab on the service's own host. */
import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import { invalid } from './named-files.ts';
import { flag, list, section, text, type Value } from './schema.ts';
import { isWithin } from './secret-files.ts';

export const clustersSchema = section({
  secretsDir: text,
  // Names of clusters that a lab from the API may describe with `local: true`.
  allowLocal: list(text),
  // Allows labs from the API to have simulated login nodes, which run on this host, where the service is root.
  allowSimulated: flag,
  // Allows simulated login nodes whose sessions are not isolated from the service, as without root.
  unsafeSimulatedLogins: flag,
});

/**
 * The section with its defaults: labs may name files in the directory of the configuration, where an operator's lab file
 * is too, but never in the data directory, nor the files of the configuration itself (`own`). There is no default where
 * that directory also has secrets of other programs. Throws `invalid_request` for a directory in the data directory.
 */
export function readClusters(
  {
    secretsDir,
    allowLocal = [],
    allowSimulated = false,
    unsafeSimulatedLogins = false,
  }: Value<typeof clustersSchema> = {},
  { file, dataDir, own }: { file: string; dataDir: string; own: readonly string[] },
) {
  const home = dirname(file);
  const given = secretsDir === undefined ? undefined : resolve(home, secretsDir);
  if (given !== undefined && isWithin(given, dataDir))
    throw invalid(
      'clusters.secretsDir is in the data directory, of which a lab may name nothing. Give another.',
    );
  const isShared = ['/', '/etc', '/root', homedir()].includes(home);
  return {
    secrets: { directory: given ?? (isShared ? undefined : home), never: [dataDir, ...own] },
    allowLocal,
    allowSimulated,
    unsafeSimulatedLogins,
  };
}
