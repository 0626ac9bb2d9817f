/** For operators: nodes of clusters that are set aside for their organizations. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { bodyOf, business } from '../api.ts';
import { installationTopics, type Reservation, readOperatorReservations } from '../installation.ts';
import { holdsStaff } from '../operator.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { InstallationNav } from '../parts/installation-nav.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { State } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { WriteForm, type WriteHeaders } from '../parts/write.tsx';
import { readOperatorClusters } from '../reads.ts';
import { useWho } from '../who.tsx';

interface Place {
  id: string;
  name: string;
  organization: string;
  /** What its members were promised. */
  isReserved: boolean;
}

export function OperatorReservationsPage() {
  const reservations = useQuery(readOperatorReservations());
  const places = usePlaces();
  const mayAct = holdsStaff(useWho(), 'staff.operate');
  const [doing, setDoing] = useState<'create' | Reservation>();
  const close = () => setDoing(undefined);
  return (
    <Page
      title="Reservations"
      sentence={reservations.data && <Sentence list={reservations.data} />}
      actions={
        mayAct && (
          <button type="button" onClick={() => setDoing('create')}>
            Reserve nodes…
          </button>
        )
      }
    >
      <InstallationNav />
      <Panel
        title="Nodes set aside"
        tools={
          <AsCommand
            api="Business"
            cli="andromeda admin reservation list"
            operation="GET /operator/reservations"
          />
        }
      >
        <Loaded of={reservations}>
          {(list) =>
            list.length === 0 ? (
              <Empty>No nodes are set aside for anybody.</Empty>
            ) : (
              <ReservationTable list={list} places={places} end={mayAct ? setDoing : undefined} />
            )
          }
        </Loaded>
      </Panel>
      {doing === 'create' && <Create places={places} close={close} />}
      {doing !== undefined && doing !== 'create' && <End reservation={doing} places={places} close={close} />}
    </Page>
  );
}

/** The clusters in service. */
function usePlaces(): Place[] {
  const clusters = useQuery(readOperatorClusters());
  return (clusters.data?.clusters ?? [])
    .filter(({ cluster }) => cluster.state === 'active' || cluster.state === 'provisioning')
    .map(({ cluster, name, organization_slug: organization }) => ({
      id: cluster.id,
      name,
      organization,
      isReserved: cluster.reservation_id !== undefined,
    }));
}

function nameOf(places: readonly Place[], id: string): string {
  return places.find((place) => place.id === id)?.name ?? id;
}

function Sentence({ list }: { list: readonly Reservation[] }) {
  const active = list.filter(({ state }) => state === 'active');
  const nodes = active.reduce((sum, one) => sum + one.node_count, 0);
  if (active.length === 0) return <>No reservation is active.</>;
  return (
    <>
      {active.length} active {active.length === 1 ? 'reservation' : 'reservations'} of {nodes}{' '}
      {nodes === 1 ? 'node' : 'nodes'} in all.
    </>
  );
}

function ReservationTable({
  list,
  places,
  end,
}: {
  list: readonly Reservation[];
  places: readonly Place[];
  end: ((reservation: Reservation) => void) | undefined;
}) {
  const columns: Column<Reservation>[] = [
    { name: 'Cluster', cell: (one) => nameOf(places, one.cluster_id) },
    { name: 'Nodes', isNumber: true, cell: (one) => one.node_count },
    {
      name: 'State',
      cell: (one) => (
        <State kind={one.state === 'active' ? 'good' : 'none'}>
          {one.state === 'active' ? 'Active' : 'Ended'}
        </State>
      ),
    },
    { name: 'Since', cell: (one) => <Age at={one.created_at} past="" /> },
    {
      name: 'Until',
      cell: ({ ends_at: ends, ended_at: ended }) => {
        const at = ended ?? ends;
        return at === undefined ? 'no end' : <Age at={at} />;
      },
    },
  ];
  if (end)
    columns.push({
      name: 'Do',
      cell: (one) =>
        one.state === 'active' && (
          <button type="button" className="second small" onClick={() => end(one)}>
            End…
          </button>
        ),
    });
  return (
    <Table
      name="reservations"
      rows={list.toReversed()}
      id={({ id }) => id}
      text={(one) => `${nameOf(places, one.cluster_id)} ${one.state}`}
      columns={columns}
    />
  );
}

function Create({ places, close }: { places: readonly Place[]; close: () => void }) {
  const free = places.filter(({ isReserved }) => !isReserved);
  const [clusterId, setClusterId] = useState(free[0]?.id ?? '');
  const [nodes, setNodes] = useState('1');
  const [end, setEnd] = useState('');
  const place = places.find(({ id }) => id === clusterId);
  const count = /^[1-9]\d{0,5}$/.test(nodes) ? Number(nodes) : undefined;
  const endsAt = end === '' ? undefined : new Date(`${end}T00:00`).toISOString();
  const body =
    place && count !== undefined
      ? { cluster_id: place.id, node_count: count, ...(endsAt !== undefined && { ends_at: endsAt }) }
      : undefined;
  const send = (wanted: NonNullable<typeof body>, header: WriteHeaders) =>
    business.POST('/operator/reservations', { params: { header }, body: wanted }).then(bodyOf);
  return (
    <Dialog title="Reserve nodes" onClose={close}>
      {free.length === 0 && <p>Every cluster in service has a reservation already: end one first.</p>}
      <WriteForm
        write={{ form: 'reservation.create', send, topics: installationTopics, onDone: close }}
        body={body}
        label="Reserve"
        cancel={close}
      >
        <label htmlFor="cluster">Cluster</label>
        <select id="cluster" value={clusterId} onChange={(event) => setClusterId(event.target.value)}>
          {free.map(({ id, name, organization }) => (
            <option key={id} value={id}>
              {name} ({organization})
            </option>
          ))}
        </select>
        <label htmlFor="nodes">Nodes</label>
        <input
          id="nodes"
          inputMode="numeric"
          pattern="[1-9][0-9]{0,5}"
          required
          value={nodes}
          onChange={(event) => setNodes(event.target.value)}
        />
        <label htmlFor="ends">
          Ends on <span className="soft">(left empty: when you end it)</span>
        </label>
        <input id="ends" type="date" value={end} onChange={(event) => setEnd(event.target.value)} />
        <p role="status">
          {place && count !== undefined
            ? `${count} ${count === 1 ? 'node' : 'nodes'} of ${place.name} become the ones that ${place.organization} expects there.`
            : 'Choose a cluster and a number of nodes.'}
        </p>
      </WriteForm>
      <AsCommand
        api="Business"
        cli={`andromeda admin reservation add --cluster ${place?.name ?? 'CLUSTER'} --nodes ${nodes}${end === '' ? '' : ` --ends ${end}`}`}
        operation="POST /operator/reservations"
      />
    </Dialog>
  );
}

function End({
  reservation: { id, cluster_id: clusterId, node_count: nodes },
  places,
  close,
}: {
  reservation: Reservation;
  places: readonly Place[];
  close: () => void;
}) {
  const send = (_body: object, header: WriteHeaders) =>
    business
      .POST('/operator/reservations/{reservationID}/end', {
        params: { path: { reservationID: id }, header },
      })
      .then(bodyOf);
  return (
    <Dialog title={`End the reservation on ${nameOf(places, clusterId)}?`} onClose={close}>
      <p>
        Its {nodes} {nodes === 1 ? 'node is' : 'nodes are'} set aside no more, and the cluster has no
        reservation. What runs there goes on. It cannot be taken up again: make another.
      </p>
      <WriteForm
        write={{ form: `reservation.end.${id}`, send, topics: installationTopics, onDone: close }}
        body={{}}
        label="End it"
        danger
        cancel={close}
      />
      <AsCommand
        api="Business"
        cli={`andromeda admin reservation end ${id} --reason '…'`}
        operation={`POST /operator/reservations/${id}/end`}
      />
    </Dialog>
  );
}
