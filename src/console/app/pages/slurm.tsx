/** A cluster's Slurm configuration: how far it is, its editor, and those of before. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useRef } from 'react';
import { ApiError } from '../api.ts';
import { AsCommand } from '../parts/copy.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { type Step, Strip } from '../parts/strip.tsx';
import { Age, Reported } from '../parts/time.tsx';
import { readClusters } from '../reads.ts';
import { Editor, type EditorHandle } from '../slurm/editor.tsx';
import { History } from '../slurm/history.tsx';
import { readStatus, readStored, readVersions, type Status, type Version } from '../slurm/reads.ts';
import { useWho } from '../who.tsx';

export function SlurmPage() {
  const who = useWho();
  const { orgID } = who;
  const { clusterId } = useParams({ from: '/frame/clusters/$clusterId/slurm' });
  const clusters = useQuery(readClusters(who));
  const stored = useQuery(readStored(clusterId, orgID));
  const status = useQuery(readStatus(clusterId, orgID));
  const versions = useQuery(readVersions(clusterId, orgID));
  const editor = useRef<EditorHandle>(undefined);
  const name = clusters.data?.find(({ id }) => id === clusterId)?.spec.name ?? clusterId;
  const refusal = [stored, status, versions].map(({ error }) => error).find(isForbidden);
  const address = `/clusters/${clusterId}/scheduler-configuration`;
  return (
    <Page
      title={`Slurm configuration of ${name}`}
      actions={
        <Link to="/clusters/$clusterId" params={{ clusterId }}>
          The cluster
        </Link>
      }
      sentence={
        refusal
          ? 'You may not see it.'
          : status.data && <Sentence status={status.data} newest={versions.data?.[0]} />
      }
    >
      {refusal ? (
        <Empty>
          {refusal.message} Ask an owner of your organization for it: it includes logging in as an
          administrator.
        </Empty>
      ) : (
        <>
          <Panel
            title="On the cluster"
            tools={
              <AsCommand
                api="Platform"
                cli={`andromeda slurm-config status ${name}`}
                operation={`GET ${address}/status?businessOrgId=${orgID}`}
              />
            }
          >
            <Loaded of={status}>{(known) => <Progress status={known} clusterId={clusterId} />}</Loaded>
          </Panel>
          <Loaded of={stored}>
            {(known) =>
              // The editor has the cluster's name for good.
              !clusters.isPending && (
                <Editor
                  key={clusterId}
                  cluster={{ id: clusterId, name }}
                  stored={known}
                  versions={versions.data ?? []}
                  isInService={status.data?.state !== 'not_in_service'}
                  handle={editor}
                />
              )
            }
          </Loaded>
          <Panel
            title="History"
            tools={
              <AsCommand
                api="Platform"
                cli={`andromeda slurm-config history ${name}`}
                operation={`GET ${address}/versions?businessOrgId=${orgID}`}
              />
            }
          >
            <Loaded of={versions}>
              {(list) => (
                <History
                  clusterId={clusterId}
                  versions={list}
                  restore={
                    status.data?.state === 'not_in_service'
                      ? undefined
                      : (text, generation) => editor.current?.restore(text, generation)
                  }
                />
              )}
            </Loaded>
          </Panel>
        </>
      )}
    </Page>
  );
}

function isForbidden(error: Error | null): error is ApiError {
  return error instanceof ApiError && error.status === 403;
}

function Sentence({ status, newest }: { status: Status; newest: Version | undefined }) {
  const { generation, state, inForceGeneration } = status;
  const number = <b>Number {generation}</b>;
  const before = inForceGeneration ? `number ${inForceGeneration} stays in force` : 'what was there stays';
  if (state === 'never_written') return <>Nothing was set yet: the cluster has what its site wrote.</>;
  if (state === 'not_in_service') return <>The cluster is not in service, and takes no configuration.</>;
  if (state === 'no_slurm') return <>{number} is kept, but the cluster has no Slurm that would take it up.</>;
  if (state === 'refused')
    return (
      <>
        {number} was tried out and not taken; {before}.
      </>
    );
  if (state === 'failed') return <>{number} could not be applied yet; it is tried again.</>;
  if (state === 'unknown') return <>{number} is set; what the cluster has is not known at the moment.</>;
  if (state !== 'in_force') return <>{number} is on its way to the cluster.</>;
  return (
    <>
      {number} is in force
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
  saved: 'The platform passes it on with the next access list.',
  applying: 'The cluster tries it out, on a copy first; what does not work is not taken.',
  unknown: 'The cluster has not reported lately.',
  failed: 'It could not be applied.',
  refused: 'The cluster did not take it.',
};

function Progress({ status, clusterId }: { status: Status; clusterId: string }) {
  const { state, savedAt, message, observedAt, inForceGeneration } = status;
  if (state === 'never_written' || state === 'no_slurm' || state === 'not_in_service') {
    return (
      <p className="soft">
        Last report: <Reported clusterId={clusterId} at={observedAt} />.
      </p>
    );
  }
  const isPassedOn = state !== 'saved';
  const tried: Step['state'] =
    state === 'in_force'
      ? 'done'
      : state === 'refused' || state === 'failed'
        ? 'failed'
        : state === 'applying'
          ? 'busy'
          : 'waiting';
  const steps: Step[] = [
    { name: 'saved', state: 'done', at: savedAt },
    { name: 'passed on', state: isPassedOn ? 'done' : 'busy' },
    { name: 'tried out', state: tried },
    { name: 'in force', state: state === 'in_force' ? 'done' : 'waiting' },
  ];
  return (
    <>
      <Strip
        of={`slurm/${clusterId}/${status.generation}`}
        steps={steps}
        missing={message ?? missing[state]}
      />
      <p className="soft small">
        Last report: <Reported clusterId={clusterId} at={observedAt} />
        {state !== 'in_force' && inForceGeneration ? `; it has number ${inForceGeneration}` : ''}.
      </p>
    </>
  );
}
