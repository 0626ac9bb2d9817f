/** `andromeda machines`. */

import { describeGpuUsage } from '../../domain/gpu-usage.ts';
import { type MachineRow, machineTable } from '../machine-table.ts';
import type { Platform } from '../net/operations.ts';
import { readPages } from '../net/pages.ts';
import { reads } from '../verb.ts';
import { type OrgOptions, orgFlag } from './caller.ts';
import { findCluster, unless } from './cluster.ts';
import { readOptions, readUsage } from './clusters.ts';

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
    // A server from before does not say what is in use.
    const used =
      items.length === 0
        ? undefined
        : await unless(['notFound', 'forbidden'], readUsage(platform, { id, organization }));
    const useOf = new Map(used?.machines.map((machine) => [machine.id, machine]));
    const rows = items.map((machine) => ({ ...row(machine), ...useRow(useOf.get(machine.id)) }));
    const table = machineTable.many({ items, ...(used && { gpus: used.gpus }) }, rows);
    const answer = used ? { ...table, message: sentenceOf(used) } : table;
    if (items.length > 0) return answer;
    // Nodes that the service may not read are unknown, which is not the same as none.
    const reported = await unless(['notFound', 'forbidden'], readOptions(platform, { id, organization }));
    const message = reported?.scheduler?.ready?.message;
    return message === undefined
      ? answer
      : { ...answer, message: `No machines are known; the cluster reports: ${message}` };
  },
});

function sentenceOf({ gpus }: Platform['ClusterUsage']): string {
  return `${describeGpuUsage(gpus)}.`;
}

function useRow(used: Platform['ClusterUsage']['machines'][number] | undefined) {
  return {
    ...(used?.gpus_in_use === undefined ? {} : { gpus_in_use: used.gpus_in_use }),
    ...(used?.reason === undefined ? {} : { reason: used.reason }),
  };
}

/** A report that is too old does not show how a machine is now. */
function row({ hardware, observed, ...machine }: Platform['Machine']): MachineRow {
  if (!observed) return { ...machine, ...hardware };
  const { ready, phase, freshness } = observed;
  return { ...machine, ...hardware, ...(freshness === 'fresh' ? { ready, phase } : { phase: freshness }) };
}
