/** The person's access to each cluster; where it is missing, the reason and the one remedy. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { AskAccess, OwnAccess, type WantedAccess } from '../parts/access-requests.tsx';
import { Button, Empty, Facts, Loaded, Page, Panel, said, together } from '../parts/page.tsx';
import { Kubeconfig, LoginLines, LoginStrip, UseLine, UsesSentence } from '../parts/people/uses.tsx';
import { Table } from '../parts/table.tsx';
import { Age, Moment, Reported } from '../parts/values.tsx';
import {
  type ClusterUse,
  readKeys,
  readMyRefusals,
  readSshAccess,
  readUses,
  type Use,
  useClusterNames,
  useWho,
} from '../reads.ts';

export function AccessPage() {
  const uses = useQuery(readUses(useWho()));
  const [wish, setWish] = useState<WantedAccess>();
  return (
    <Page title="Access" sentence={said(uses, (list) => <UsesSentence uses={list} />)}>
      <Loaded of={uses}>
        {(list) =>
          list.length === 0 ? (
            <Empty>There is no cluster that you can see or use yet.</Empty>
          ) : (
            list.map((cluster) => (
              <ClusterAccess
                key={cluster.cluster_id}
                cluster={cluster}
                ask={(key) => setWish({ keys: [key], cluster })}
              />
            ))
          )
        }
      </Loaded>
      <OwnAccess ask={setWish} />
      <Refusals />
      {wish && <AskAccess wish={wish} close={() => setWish(undefined)} />}
    </Page>
  );
}

function ClusterAccess({ cluster, ask }: { cluster: ClusterUse; ask: (key: string) => void }) {
  const { ssh, kubernetes, cluster_name: name } = cluster;
  // Only the cluster's own organization gives access to it.
  const mayAsk = cluster.organization_id === useWho().orgID;
  return (
    <Panel title={name} cli={`andromeda access show ${name}`} operation="GET /me/access">
      <UseLine way="SSH" use={ssh}>
        <Remedy use={ssh} way="SSH" ask={mayAsk && (() => ask('clusters.ssh'))} />
      </UseLine>
      {ssh.granted && <Logins cluster={cluster} />}
      <UseLine way="Kubernetes" use={kubernetes}>
        <Remedy use={kubernetes} way="Kubernetes" ask={mayAsk && (() => ask('clusters.kubernetes'))} />
      </UseLine>
      {kubernetes.state === 'ready' && <Kubeconfig cluster={cluster} />}
    </Panel>
  );
}

/** The remedy for missing access, and the end of existing access. */
function Remedy({ use, way, ask }: { use: Use; way: string; ask: false | (() => void) }) {
  const { reason, next, granted, expires_at: end } = use;
  if (reason === 'no_keys' || reason === 'key_lapsed') return <Link to="/keys">Register a key.</Link>;
  if (!granted && next === 'you' && ask)
    return <Button className="small" onClick={ask}>{`Request ${way} access…`}</Button>;
  if (end === undefined) return null;
  return (
    <>
      Ends <Moment at={end} />.{' '}
      {ask && (
        <Button className="second small" onClick={ask}>
          Extend…
        </Button>
      )}
    </>
  );
}

function Logins({ cluster }: { cluster: ClusterUse }) {
  const access = useQuery(readSshAccess(cluster));
  const keys = useQuery(readKeys());
  return (
    <Loaded of={together({ access, keys })}>
      {({ access: known, keys: { keys: all } }) => (
        <>
          <LoginStrip
            cluster={cluster}
            newest={all.filter((key) => key.lifecycle_state === 'active').at(-1)}
          />
          {known && cluster.ssh.state === 'ready' && <LoginLines cluster={cluster} access={known} />}
          {known && (
            <Facts
              of={{
                'User name': known.username || '–',
                Shell: known.shell || '–',
                'Last report': <Reported clusterId={cluster.cluster_id} at={known.observed_at} />,
                'Access list': `${known.observed_manifest_generation} of ${known.manifest_generation} applied`,
              }}
            />
          )}
        </>
      )}
    </Loaded>
  );
}

function Refusals() {
  const refusals = useQuery(readMyRefusals());
  const names = useClusterNames();
  return (
    <Panel title="Recently refused logins" operation="GET /me/ssh-refusals">
      <Table
        name="refused logins"
        of={refusals}
        rows={refusals.data?.refusals}
        id={(one) => `${one.at} ${one.key_id}`}
        columns={[
          { name: 'When', cell: (one) => <Age at={one.at} /> },
          { name: 'Cluster', cell: (one) => names.get(one.cluster_id ?? '') ?? one.cluster_id ?? '–' },
          { name: 'From', cell: (one) => one.source_address },
          { name: 'Reason', cell: (one) => one.message },
        ]}
        none={
          <p className="soft">
            No login with your keys was refused recently. Logins with unregistered keys are not listed.
          </p>
        }
      />
      <Button className="link small" onClick={() => void refusals.refetch()}>
        Refresh
      </Button>
    </Panel>
  );
}
