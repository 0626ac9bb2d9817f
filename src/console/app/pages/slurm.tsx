/** A cluster's Slurm configuration: its sync status, its editor and its history. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { Loaded, Page, Panel, said, together } from '../parts/page.tsx';
import { Strip, stepsOf } from '../parts/strip.tsx';
import { Age, LastReport } from '../parts/values.tsx';
import { readClusters, useWho } from '../reads.ts';
import { Editor, type Restored } from '../slurm/editor.tsx';
import { History } from '../slurm/history.tsx';
import { readStatus, readStored, readVersions, type Status, type Version } from '../slurm/reads.ts';

export default function SlurmPage() {
  const { clusterId } = useParams({ from: '/frame/clusters/$clusterId/slurm' });
  return <Configuration key={clusterId} id={clusterId} />;
}

function Configuration({ id }: { id: string }) {
  const who = useWho();
  const { orgID } = who;
  const clusters = useQuery(readClusters(who));
  const stored = useQuery(readStored(id, orgID));
  const status = useQuery(readStatus(id, orgID));
  const versions = useQuery(readVersions(id, orgID));
  const [restored, setRestored] = useState<Restored>();
  const name = clusters.data?.find((one) => one.id === id)?.spec.name ?? id;
  const isInService = status.data?.state !== 'not_in_service';
  const sentence = said(together({ status, versions }), (known) => (
    <Sentence status={known.status} newest={known.versions[0]} />
  ));
  const command = (verb: string, path: string) => ({
    cli: `andromeda slurm-config ${verb} ${name}`,
    operation: `GET /clusters/${id}/scheduler-configuration/${path}?businessOrgId=${orgID}`,
  });
  const back = (
    <Link to="/clusters/$clusterId" params={{ clusterId: id }}>
      Cluster
    </Link>
  );
  return (
    <Page title={`Slurm configuration of ${name}`} actions={back} sentence={sentence}>
      <Panel title="On the cluster" {...command('status', 'status')}>
        <Loaded of={status}>{(known) => <Progress status={known} clusterId={id} />}</Loaded>
      </Panel>
      <Loaded of={stored}>
        {(known) => (
          <Editor
            cluster={{ id, name }}
            stored={known}
            versions={versions.data ?? []}
            isInService={isInService}
            restored={restored}
            onSaved={() => setRestored(undefined)}
          />
        )}
      </Loaded>
      <Panel title="History" {...command('history', 'versions')}>
        <Loaded of={versions}>
          {(list) => (
            <History clusterId={id} versions={list} restore={isInService ? setRestored : undefined} />
          )}
        </Loaded>
      </Panel>
    </Page>
  );
}

function Sentence({ status, newest }: { status: Status; newest: Version | undefined }) {
  const { generation, state, inForceGeneration } = status;
  const number = <b>Version {generation}</b>;
  const before = inForceGeneration
    ? `version ${inForceGeneration} stays active`
    : 'the previous one stays active';
  if (state === 'never_written') return <>No configuration yet: the cluster uses the one of its site.</>;
  if (state === 'not_in_service') return <>The cluster is not in service, and takes no configuration.</>;
  if (state === 'no_slurm') return <>{number} is saved, but the cluster does not run Slurm.</>;
  if (state === 'refused')
    return (
      <>
        {number} was tested and rejected; {before}.
      </>
    );
  if (state === 'failed') return <>{number} could not be applied yet and will be retried.</>;
  if (state === 'unknown') return <>{number} is set; the state of the cluster is unknown.</>;
  if (state !== 'in_force') return <>{number} is being applied.</>;
  return (
    <>
      {number} is active
      {newest?.generation === generation && (
        <>
          , set by {newest.author.email} <Age at={newest.createdAt} />
        </>
      )}
      .
    </>
  );
}

const missing: Partial<Record<Status['state'], string>> = {
  saved: 'It is sent with the next access list.',
  applying: 'The cluster tests it on a copy first and rejects it if it does not work.',
  unknown: 'The cluster has not reported recently.',
  failed: 'It could not be applied.',
  refused: 'The cluster rejected it.',
};

function Progress({ status, clusterId }: { status: Status; clusterId: string }) {
  const { state, savedAt, message, observedAt } = status;
  if (state === 'never_written' || state === 'no_slurm' || state === 'not_in_service')
    return <LastReport clusterId={clusterId} at={observedAt} />;
  const tested =
    state === 'refused' || state === 'failed' ? 'failed' : state === 'unknown' ? 'waiting' : 'busy';
  const isActive = state === 'in_force';
  const steps = stepsOf(tested, [
    { name: 'saved', isDone: true, at: savedAt },
    { name: 'sent', isDone: state !== 'saved' },
    { name: 'tested', isDone: isActive },
    { name: 'active', isDone: isActive },
  ]);
  return (
    <>
      <Strip
        of={`slurm/${clusterId}/${status.generation}`}
        steps={steps}
        missing={message ?? missing[state]}
      />
      <LastReport clusterId={clusterId} at={observedAt} />
    </>
  );
}
