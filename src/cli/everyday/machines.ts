/** `andromeda machines`. */
import { type MachineRow, machineTable } from '../machine-table.ts';
import { at, query } from '../net/api.ts';
import { readPages } from '../net/pages.ts';
import { reads } from '../verb.ts';
import { type OrgOptions, orgFlag } from './caller.ts';
import { findCluster } from './cluster.ts';

export interface Machine {
  id: string;
  name: string;
  lifecycle_state: string;
  hardware: Pick<MachineRow, 'gpu_model' | 'gpu_count' | 'cpu_cores' | 'memory_gib'>;
  observed?: { ready: boolean; phase: string; freshness: string };
}

interface Page {
  items: Machine[];
  next_page_token?: string;
}

export const machines = reads<OrgOptions>({
  usage: 'machines <cluster>',
  summary: 'the machines of a cluster',
  example: 'machines alpha',
  flags: [orgFlag],
  async run({ api, platform, options }, wanted = '') {
    const { id, organization } = await findCluster({ api, platform }, wanted, options);
    const path = at`/clusters/${id}/machines`;
    const items = await readPages(
      (after) => platform.get<Page>(`${path}${query({ businessOrgId: organization.id, limit: 200, after })}`),
      (page) => ({ items: page.items, next: page.next_page_token }),
    );
    return machineTable.many({ items }, items.map(row));
  },
});

/** What a machine reported too long ago is no word on how it is now. */
function row({ hardware, observed, ...machine }: Machine): MachineRow {
  if (!observed) return { ...machine, ...hardware };
  const { ready, phase, freshness } = observed;
  return { ...machine, ...hardware, ...(freshness === 'fresh' ? { ready, phase } : { phase: freshness }) };
}
