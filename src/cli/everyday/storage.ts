/** `andromeda storage`. */

import { printer } from '../answer.ts';
import type { Platform } from '../net/operations.ts';
import { reads } from '../verb.ts';
import { findOrganizations, type OrgOptions, orgFlag } from './caller.ts';
import { unless } from './cluster.ts';
import { describeCondition, formatBytes } from './describe.ts';

type StorageEntry = Platform['StorageInventoryEntry'];
type Backend = StorageEntry['backends'][number];

const table = printer<{ entry: StorageEntry; backend?: Backend }>(
  {
    CLUSTER: ({ entry }) => entry.clusterName,
    STATE: ({ entry }) => entry.state,
    TYPE: ({ backend }) => backend?.type,
    CONFIGURED: ({ backend }) => backend?.configured,
    QUOTA: ({ backend }) => formatBytes(backend?.configuredQuotaBytes),
    PURCHASED: ({ backend }) => formatBytes(backend?.purchasedRawBytes),
    READY: ({ backend }) => describeCondition(backend?.ready),
  },
  'There are no clusters.',
);

export const storage = reads<OrgOptions>({
  usage: 'storage',
  summary: 'the storage of every cluster of your organizations',
  example: 'storage --org physics',
  flags: [orgFlag],
  async run({ api, platform, options }) {
    const organizations = await findOrganizations(api, options);
    // Of several organizations, one that keeps its storage to itself does not hide the others.
    const passing = organizations.length > 1 ? (['forbidden'] as const) : [];
    const lists = await Promise.all(
      organizations.map(({ id }) =>
        unless(passing, platform.get('/organizations/{orgId}/storage', { path: { orgId: id } })),
      ),
    );
    const items = lists.flatMap((list) => list?.items ?? []);
    return table.many({ items }, items.flatMap(rowsOf));
  },
});

/** What a cluster does not have takes no line, unless it has nothing. */
function rowsOf(entry: StorageEntry): { entry: StorageEntry; backend?: Backend }[] {
  const backends = entry.backends.filter(({ configured }) => configured !== 'not_configured');
  return backends.length === 0 ? [{ entry }] : backends.map((backend) => ({ entry, backend }));
}
