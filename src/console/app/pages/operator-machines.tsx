/** For operators: the machines of a cluster, and forms to admit or quarantine them. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { operation } from '../api.ts';
import { MachineState } from '../parts/gpus.tsx';
import { Button, Empty, Loaded, Page, Panel, Select, said } from '../parts/page.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age, count, type Kind } from '../parts/values.tsx';
import { WriteDialog } from '../parts/write.tsx';
import {
  holdsStaff,
  installationTopics,
  type OperatorMachine,
  readOperatorClusters,
  readOperatorMachines,
  useWho,
} from '../reads.ts';
import { SurveyPanel } from './operator-survey.tsx';

interface MachineAction {
  machine: OperatorMachine;
  action: 'admit' | 'quarantine';
}

export default function OperatorMachinesPage() {
  const search = useSearch({ from: '/frame/operator/machines' });
  const navigate = useNavigate({ from: '/operator/machines' });
  const clusters = useQuery(readOperatorClusters());
  const known = (clusters.data?.clusters ?? []).filter(({ cluster }) => cluster.state !== 'released');
  const chosen =
    known.find(({ name, cluster }) => [name, cluster.id].includes(search.cluster ?? '')) ?? known[0];
  const { id = '' } = chosen?.cluster ?? {};
  const machines = useQuery({ ...readOperatorMachines(id), enabled: id !== '' });
  const name = chosen?.name ?? '';
  const mayAsk = holdsStaff(useWho(), 'staff.operate');
  return (
    <Page
      title="Machines"
      isWide
      sentence={said(machines, (data) => <Sentence name={name} machines={data.machines} />)}
    >
      <Panel
        title={`Machines of ${name || 'no cluster'}`}
        cli={`andromeda admin machine list --cluster ${name}`}
        operation={`GET /operator/clusters/${id}/machines`}
      >
        <Loaded of={clusters}>{() => !chosen && <Empty>There is no cluster in service.</Empty>}</Loaded>
        {known.length > 1 && (
          <p>
            <Select
              id="cluster"
              label="Cluster"
              value={id}
              onChange={(cluster) => void navigate({ search: { cluster }, replace: true })}
              options={known.map((one) => [one.cluster.id, one.name] as const)}
            />
          </p>
        )}
        {chosen && <Loaded of={machines}>{(data) => <MachineTable cluster={name} {...data} />}</Loaded>}
      </Panel>
      {chosen?.drivers.includes('slurm') && mayAsk && <SurveyPanel key={id} clusterID={id} name={name} />}
    </Page>
  );
}

function Sentence({ name, machines }: { name: string; machines: readonly OperatorMachine[] }) {
  const kept = machines.filter((one) => one.lifecycle_state === 'quarantined').length;
  const away = machines.filter((one) => one.ready === false && one.lifecycle_state !== 'quarantined').length;
  return `${name} has ${count(machines.length, 'machine')}: ${kept} quarantined, ${away} otherwise unavailable.`;
}

function stateOf({ lifecycle_state: state, ready, phase, stale }: OperatorMachine): {
  kind: Kind;
  word: string;
} {
  if (state === 'quarantined') return { kind: 'none', word: 'Quarantined' };
  if (stale) return { kind: 'none', word: 'Not reporting' };
  if (ready === undefined) return { kind: 'none', word: 'Not reported' };
  return { kind: ready ? 'good' : 'bad', word: phase || (ready ? 'Ready' : 'Not ready') };
}

const columns: Column<OperatorMachine>[] = [
  { name: 'Name', cell: (one) => one.name },
  {
    name: 'State',
    cell: (one) => <MachineState {...stateOf(one)} reason={one.stale ? undefined : one.reason} />,
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

function MachineTable({ cluster, machines }: { cluster: string; machines: readonly OperatorMachine[] }) {
  const mayAct = holdsStaff(useWho(), 'staff.operate');
  const [doing, setDoing] = useState<MachineAction>();
  const actions: Column<OperatorMachine> = {
    name: 'Actions',
    cell: (machine) => (
      <span className="buttons inline">
        {machine.lifecycle_state !== 'admitted' && (
          <Button className="second small" onClick={() => setDoing({ machine, action: 'admit' })}>
            Admit… <span className="hidden">{machine.name}</span>
          </Button>
        )}
        {machine.lifecycle_state !== 'quarantined' && (
          <Button className="second small" onClick={() => setDoing({ machine, action: 'quarantine' })}>
            Quarantine… <span className="hidden">{machine.name}</span>
          </Button>
        )}
      </span>
    ),
  };
  return (
    <>
      <Table
        name="machines"
        rows={machines}
        id={({ id }) => id}
        text={(one) => `${one.name} ${stateOf(one).word} ${one.lifecycle_state} ${one.reason ?? ''}`}
        columns={mayAct ? [...columns, actions] : columns}
        none={<Empty>No machines reported yet.</Empty>}
      />
      {doing && <Change {...doing} cluster={cluster} close={() => setDoing(undefined)} />}
    </>
  );
}

const consequences = {
  admit: 'It accepts work again, and its free GPUs count as free.',
  quarantine: 'It accepts no new work, and its GPUs no longer count as free. Running jobs continue.',
};

function Change({ machine, action, cluster, close }: MachineAction & { cluster: string; close: () => void }) {
  const verb = action === 'admit' ? 'Admit' : 'Quarantine';
  return (
    <WriteDialog
      title={`${verb} ${machine.name}?`}
      operation={operation('post', `/operator/machines/{machineID}/${action}`, { machineID: machine.id })}
      topics={installationTopics}
      body={{}}
      label={verb}
      danger={action === 'quarantine'}
      cli={`andromeda admin machine ${action} ${machine.name} --cluster ${cluster} --reason '…'`}
      close={close}
    >
      <p>{consequences[action]}</p>
    </WriteDialog>
  );
}
