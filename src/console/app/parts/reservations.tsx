/** The nodes of a cluster that are set aside for the organization, for members who may see that. */
import { useQuery } from '@tanstack/react-query';
import { readReservations } from '../reads.ts';
import { useWho } from '../who.tsx';
import { AsCommand } from './copy.tsx';
import { Panel } from './page.tsx';
import { State } from './state.tsx';

export function Reservations({ clusterId }: { clusterId: string }) {
  const who = useWho();
  const { orgID } = who;
  const all = useQuery(readReservations(who, clusterId));
  const reserved = all.data?.find((one) => one.cluster_id === clusterId);
  if (!reserved) return null;
  const { id, node_count: count } = reserved;
  return (
    <Panel
      title="Reserved for you"
      tools={
        <AsCommand
          api="Business"
          cli={`andromeda call business GET /organizations/${orgID}/reservations`}
          operation={`GET /organizations/${orgID}/reservations`}
        />
      }
    >
      <p>
        <State kind="good">
          {count} {count === 1 ? 'node' : 'nodes'}
        </State>{' '}
        <span className="soft">{id}</span>
      </p>
    </Panel>
  );
}
