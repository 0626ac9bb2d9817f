/** `andromeda machines`. */

import { type MachineRow, machineTable } from '../machine-table.ts';
import type { Platform } from '../net/operations.ts';
import { readPages } from '../net/pages.ts';
import { reads } from '../verb.ts';
import { type OrgOptions, orgFlag } from './caller.ts';
import { findCluster, unless } from './cluster.ts';
import { readOptions } from './clusters.ts';

export const machines = reads<OrgOptions>({
  usage: 'machines <cluster>',
  summary: 'the machines of a cluster',
  example: 'machines alpha',
  flags: [orgFlag],
  async run({ api, platform, options }, wanted = '') {
    const { id, organization } = await findCluster({ api, platform }, wanted, options);
    const path = { clusterId: id };
    const businessOrgId = organization.id;
    const items = await readPages(
      (after) =>
        platform.get('/clusters/{clusterId}/machines', { path, query: { businessOrgId, limit: 200, after } }),
      (page) => ({ items: page.items, next: page.next_page_token }),
    );
    const answer = machineTable.many({ items }, items.map(row));
    if (items.length > 0) return answer;
    // Nodes that the service may not read are unknown, which is not the same as none.
    const reported = await unless(['notFound', 'forbidden'], readOptions(platform, { id, organization }));
    const message = reported?.scheduler?.ready?.message;
    return message === undefined
      ? answer
      : { ...answer, message: `No machines are known; the cluster reports: ${message}` };
  },
});

/** A report that is too old does not show how a machine is now. */
function row({ hardware, observed, ...machine }: Platform['Machine']): MachineRow {
  if (!observed) return { ...machine, ...hardware };
  const { ready, phase, freshness } = observed;
  return { ...machine, ...hardware, ...(freshness === 'fresh' ? { ready, phase } : { phase: freshness }) };
}
