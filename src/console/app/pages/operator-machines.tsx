/** For operators: the machines of a cluster, and which of them may work. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { bodyOf, business } from '../api.ts';
import { installationTopics, type Machine, readOperatorMachines } from '../installation.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { InstallationNav } from '../parts/installation-nav.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { type Kind, State } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { WriteForm, type WriteHeaders } from '../parts/write.tsx';
import { readOperatorClusters } from '../reads.ts';
import { holdsStaff, useWho } from '../who.tsx';

interface Doing {
  machine: Machine;
  to: 'admit' | 'quarantine';
}

export function OperatorMachinesPage() {
  const search = useSearch({ from: '/frame/operator/machines' });
  const navigate = useNavigate({ from: '/operator/machines' });
  const clusters = useQuery(readOperatorClusters());
  const known = (clusters.data?.clusters ?? []).filter(({ cluster }) => cluster.state !== 'released');
  const chosen =
    known.find(({ name, cluster }) => [name, cluster.id].includes(search.cluster ?? '')) ?? known[0];
  const id = chosen?.cluster.id ?? '';
  const machines = useQuery({ ...readOperatorMachines(id), enabled: id !== '' });
  const [doing, setDoing] = useState<Doing>();
  const name = chosen?.name ?? '';
  return (
    <Page
      title="Machines"
      isWide
      sentence={machines.data && <Sentence name={name} machines={machines.data} />}
    >
      <InstallationNav />
      <Panel
        title={`Machines of ${name || 'no cluster'}`}
        tools={
          <AsCommand
            api="Business"
            cli={`andromeda admin machine list --cluster ${name}`}
            operation={`GET /operator/clusters/${id}/machines`}
          />
        }
      >
        {clusters.data && !chosen && <Empty>There is no cluster in service.</Empty>}
        {known.length > 1 && (
          <p>
            <label htmlFor="cluster">Cluster</label>
            <select
              id="cluster"
              value={id}
              onChange={(event) => void navigate({ search: { cluster: event.target.value }, replace: true })}
            >
              {known.map((one) => (
                <option key={one.cluster.id} value={one.cluster.id}>
                  {one.name}
                </option>
              ))}
            </select>
          </p>
        )}
        {chosen && (
          <Loaded of={machines}>
            {(list) =>
              list.length === 0 ? (
                <Empty>No machines reported yet.</Empty>
              ) : (
                <MachineTable machines={list} act={setDoing} />
              )
            }
          </Loaded>
        )}
      </Panel>
      {doing && <Change doing={doing} cluster={name} close={() => setDoing(undefined)} />}
    </Page>
  );
}

function Sentence({ name, machines }: { name: string; machines: readonly Machine[] }) {
  const kept = machines.filter((one) => one.lifecycle_state === 'quarantined').length;
  const away = machines.filter((one) => one.ready === false && one.lifecycle_state !== 'quarantined').length;
  return (
    <>
      {name} has {machines.length} {machines.length === 1 ? 'machine' : 'machines'}: {kept} quarantined,{' '}
      {away} otherwise unavailable.
    </>
  );
}

function stateOf({ lifecycle_state: state, ready, phase, stale }: Machine): { kind: Kind; text: string } {
  if (state === 'quarantined') return { kind: 'warn', text: 'Quarantined' };
  if (stale) return { kind: 'none', text: 'Not reporting' };
  if (ready === undefined) return { kind: 'none', text: 'Not reported' };
  return { kind: ready ? 'good' : 'bad', text: phase || (ready ? 'Ready' : 'Not ready') };
}

function MachineTable({ machines, act }: { machines: readonly Machine[]; act: (doing: Doing) => void }) {
  const mayAct = holdsStaff(useWho(), 'staff.operate');
  const columns: Column<Machine>[] = [
    { name: 'Name', cell: (one) => one.name },
    {
      name: 'State',
      cell: (one) => {
        const { kind, text } = stateOf(one);
        return (
          <div className="two">
            <div>
              <State kind={kind}>{text}</State>
            </div>
            {one.reason !== undefined && !one.stale && <span>{one.reason}</span>}
          </div>
        );
      },
    },
    { name: 'Admission', cell: (one) => one.lifecycle_state },
    {
      name: 'In use',
      isNumber: true,
      cell: (one) => (one.stale ? 'unknown' : (one.gpus_in_use ?? 'unknown')),
    },
    { name: 'GPUs', isNumber: true, cell: (one) => one.gpu_count ?? '–' },
    { name: 'Model', cell: (one) => one.gpu_model ?? '–' },
    { name: 'Reported', cell: (one) => (one.observed_at ? <Age at={one.observed_at} /> : 'never') },
  ];
  if (mayAct)
    columns.push({
      name: 'Actions',
      cell: (machine) => (
        <span className="buttons inline">
          {machine.lifecycle_state !== 'admitted' && (
            <button type="button" className="second small" onClick={() => act({ machine, to: 'admit' })}>
              Admit… <span className="hidden">{machine.name}</span>
            </button>
          )}
          {machine.lifecycle_state !== 'quarantined' && (
            <button type="button" className="second small" onClick={() => act({ machine, to: 'quarantine' })}>
              Quarantine… <span className="hidden">{machine.name}</span>
            </button>
          )}
        </span>
      ),
    });
  return (
    <Table
      name="machines"
      rows={machines}
      id={({ id }) => id}
      text={(one) => `${one.name} ${stateOf(one).text} ${one.lifecycle_state} ${one.reason ?? ''}`}
      columns={columns}
    />
  );
}

const consequences = {
  admit: 'It accepts work again, and its free GPUs count as free.',
  quarantine: 'It accepts no new work, and its GPUs no longer count as free. Running jobs continue.',
};

function Change({
  doing: { machine, to },
  cluster,
  close,
}: {
  doing: Doing;
  cluster: string;
  close: () => void;
}) {
  const send = (_body: object, header: WriteHeaders) =>
    business
      .POST(`/operator/machines/{machineID}/${to}`, { params: { path: { machineID: machine.id }, header } })
      .then(bodyOf);
  const verb = to === 'admit' ? 'Admit' : 'Quarantine';
  return (
    <Dialog title={`${verb} ${machine.name}?`} onClose={close}>
      <p>{consequences[to]}</p>
      <WriteForm
        write={{ form: `machine.${to}.${machine.id}`, send, topics: installationTopics, onDone: close }}
        body={{}}
        label={verb}
        danger={to === 'quarantine'}
        cancel={close}
      />
      <AsCommand
        api="Business"
        cli={`andromeda admin machine ${to} ${machine.name} --cluster ${cluster} --reason '…'`}
        operation={`POST /operator/machines/${machine.id}/${to}`}
      />
    </Dialog>
  );
}
