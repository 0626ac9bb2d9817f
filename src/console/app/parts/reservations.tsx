/** The nodes of a cluster that are set aside for the organization, for members who may see that. */
import { useQuery } from '@tanstack/react-query';
import { count } from '../count.ts';
import { readReservations } from '../reads.ts';
import { useWho } from '../who.tsx';
import { Panel } from './page.tsx';
import { State } from './state.tsx';

export function Reservations({ clusterId }: { clusterId: string }) {
  const who = useWho();
  const all = useQuery(readReservations(who, clusterId));
  const reserved = all.data?.find((one) => one.cluster_id === clusterId);
  if (!reserved) return null;
  return (
    <Panel title="Reserved for you" command={{ operation: `GET /organizations/${who.orgID}/reservations` }}>
      <p>
        <State kind="good">{count(reserved.node_count, 'node')}</State>{' '}
        <span className="soft">{reserved.id}</span>
      </p>
    </Panel>
  );
}
