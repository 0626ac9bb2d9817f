/** The nodes of a cluster that are set aside for the organization, for members who may see that. */
import { useQuery } from '@tanstack/react-query';
import { readReservations } from '../reads.ts';
import { useWho } from '../who.tsx';
import { AsCommand } from './copy.tsx';
import { Panel } from './page.tsx';
import { State } from './state.tsx';
import { Age, Moment } from './time.tsx';

const mostEnded = 3;

export function Reservations({ clusterId }: { clusterId: string }) {
  const who = useWho();
  const { orgID } = who;
  const all = useQuery(readReservations(who, clusterId));
  const data = (all.data ?? []).filter((one) => one.cluster_id === clusterId);
  // Without the permission there is nothing to say, and nothing to do.
  if (data.length === 0) return null;
  const active = data.filter(({ state }) => state === 'active');
  const ended = data.filter(({ state }) => state === 'ended').slice(-mostEnded);
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
      <ul className="plain">
        {active.map(({ id, node_count: count, created_at: at, ends_at: end }) => (
          <li key={id}>
            <State kind="good">
              {count} {count === 1 ? 'node' : 'nodes'}
            </State>{' '}
            since <Moment at={at} />,{' '}
            {end === undefined ? 'without an end' : <>until {<Moment at={end} />}</>}
          </li>
        ))}
        {ended.map(({ id, node_count: count, ended_at: end }) => (
          <li key={id} className="soft">
            {count} {count === 1 ? 'node' : 'nodes'}, ended {end && <Age at={end} />}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
