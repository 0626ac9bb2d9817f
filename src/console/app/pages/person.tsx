/** One person: what they reach, by which way, since when and until when, and whether each cluster has it. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { csv } from '../../../domain/csv.ts';
import { AccessStates, obstacleText, Until, WayIn } from '../parts/access-state.tsx';
import { AsCommand } from '../parts/copy.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { ChangePermissions, ChangeRole, RemoveMember, type Subject } from '../parts/people/member-forms.tsx';
import { State } from '../parts/state.tsx';
import { Strip } from '../parts/strip.tsx';
import { Table } from '../parts/table.tsx';
import { Age, Moment, Reported } from '../parts/time.tsx';
import { type Delivery, type Person, progressOf, readAccessOf, type Way, wayText } from '../people.ts';
import { readCatalog, readClusters, readMemberPermissions } from '../reads.ts';
import { save } from '../save.ts';
import { useWho } from '../who.tsx';

export function PersonPage() {
  const who = useWho();
  const { orgID } = who;
  const { userId } = useParams({ from: '/frame/members/$userId' });
  const clusters = useQuery(readClusters(who));
  const access = useQuery({
    ...readAccessOf(orgID, [userId], clusters.data?.map(({ id }) => id) ?? []),
    enabled: clusters.data !== undefined,
  });
  const person = access.data?.people[0];
  return (
    <Page title={person?.email ?? 'Person'} sentence={person && <Sentence person={person} />}>
      <Loaded of={access}>
        {(known) =>
          person === undefined ? (
            <Empty action={<Link to="/members">Members</Link>}>
              No one with this ID is or was a member here, or has a grant.
            </Empty>
          ) : (
            <>
              <About person={person} />
              <Reach person={person} clusters={known.clusters} />
              {known.clusters.map((cluster) => (
                <OnCluster key={cluster.cluster_id} person={person} cluster={cluster} />
              ))}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function Sentence({ person }: { person: Person }) {
  const reached = person.clusters.filter(({ ways }) => ways.length > 0).length;
  const total = person.clusters.length;
  const who = person.is_member ? `${person.role === 'member' ? 'A' : 'An'} ${person.role}` : 'Not a member';
  return (
    <>
      {person.name === person.email ? '' : `${person.name}. `}
      {who}, with access to {reached} of {total} {total === 1 ? 'cluster' : 'clusters'}.
    </>
  );
}

function Actions({ person }: { person: Person }) {
  const who = useWho();
  const { isManager, membership } = who;
  const [doing, setDoing] = useState<'permissions' | 'role' | 'remove'>();
  const permissions = useQuery(readMemberPermissions(who));
  const profiles = useQuery(readCatalog());
  if (!person.is_member || person.role === undefined || !permissions.data) return null;
  const catalog = (profiles.data?.permissions ?? []).filter(({ key }) => !key.startsWith('organization.'));
  const own = permissions.data.members.find(({ user_id: id }) => id === person.user_id);
  const subject: Subject = {
    userId: person.user_id,
    email: person.email,
    role: person.role,
    granted: person.role === 'member' ? (own?.permissions ?? []) : [],
    ends: own?.expires_at ?? {},
  };
  const mayManage = isManager && (person.role !== 'owner' || membership?.role === 'owner');
  const grants = person.clusters.flatMap(({ ways }) => ways).filter(({ by }) => by === 'grant').length;
  const close = () => setDoing(undefined);
  return (
    <div className="buttons">
      {person.role === 'member' && (
        <button type="button" className="second" onClick={() => setDoing('permissions')}>
          Permissions…
        </button>
      )}
      {mayManage && (
        <>
          <button type="button" className="second" onClick={() => setDoing('role')}>
            Role…
          </button>
          <button type="button" className="second" onClick={() => setDoing('remove')}>
            Remove…
          </button>
        </>
      )}
      {doing === 'permissions' && <ChangePermissions subject={subject} catalog={catalog} close={close} />}
      {doing === 'role' && <ChangeRole subject={subject} close={close} />}
      {doing === 'remove' && <RemoveMember subject={subject} grants={grants} close={close} />}
    </div>
  );
}

function About({ person }: { person: Person }) {
  const { orgID } = useWho();
  return (
    <Panel
      title="Who"
      tools={
        <AsCommand
          api="Business"
          cli={`andromeda members access ${person.user_id}`}
          operation={`GET /organizations/${orgID}/access?user_ids=${person.user_id}`}
        />
      }
    >
      <dl className="facts">
        <Fact name="Address" value={person.email} />
        <Fact name="Name" value={person.name} />
        <Fact name="Role" value={person.role ?? 'not a member'} />
        <Fact
          name="User name"
          value={
            person.username === undefined
              ? '–'
              : `${person.username}${person.username_state === 'frozen' ? ', permanent' : ', not used yet'}`
          }
        />
        {person.member_since !== undefined && (
          <Fact name="Member since" value={<Moment at={person.member_since} />} />
        )}
        {person.changed_at !== undefined && (
          <Fact
            name={person.is_member ? 'Last changed' : 'Was a member until'}
            value={<Moment at={person.changed_at} />}
          />
        )}
      </dl>
      <Actions person={person} />
      <h3>SSH keys</h3>
      {person.keys.length === 0 ? (
        <p className="soft">You have no active keys.</p>
      ) : (
        <Table
          name="keys"
          rows={person.keys}
          id={(key) => key.fingerprint}
          columns={[
            { name: 'Fingerprint', cell: (key) => <code className="cut">{key.fingerprint}</code> },
            { name: 'Registered', cell: (key) => <Age at={key.created_at} /> },
            {
              name: 'State',
              cell: (key) =>
                key.lapsed ? <State kind="warn">Expired</State> : <State kind="good">Active</State>,
            },
          ]}
        />
      )}
    </Panel>
  );
}

function Fact({ name, value }: { name: string; value: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

interface Row {
  cluster: Delivery;
  way: Way;
}

function Reach({ person, clusters }: { person: Person; clusters: readonly Delivery[] }) {
  const rows = clusters.flatMap((cluster): Row[] =>
    (person.clusters.find((one) => one.cluster_id === cluster.cluster_id)?.ways ?? []).map((way) => ({
      cluster,
      way,
    })),
  );
  return (
    <Panel
      title="Access"
      tools={
        <button type="button" className="link small" onClick={() => exportRows(person, rows)}>
          Save as CSV
        </button>
      }
    >
      {rows.length === 0 ? (
        <p className="soft">No access to any cluster.</p>
      ) : (
        <Table
          name="ways"
          rows={rows}
          id={({ cluster, way }) => `${cluster.cluster_id} ${way.opens} ${way.name} ${way.grant_id ?? ''}`}
          columns={[
            {
              name: 'Cluster',
              cell: ({ cluster }) => (
                <Link to="/clusters/$clusterId/people" params={{ clusterId: cluster.cluster_id }}>
                  {cluster.cluster_name}
                </Link>
              ),
            },
            { name: 'Access', cell: ({ way }) => <WayIn way={way} /> },
            {
              name: 'Since',
              cell: ({ way }) => (
                <span>
                  {way.by !== 'grant' && <span className="soft">at least </span>}
                  <Age at={way.since} />
                </span>
              ),
            },
            { name: 'Until', cell: ({ way }) => <Until at={way.until} /> },
          ]}
        />
      )}
    </Panel>
  );
}

function OnCluster({ person, cluster }: { person: Person; cluster: Delivery }) {
  const on = person.clusters.find((one) => one.cluster_id === cluster.cluster_id);
  const { steps, missing } = progressOf([person], cluster);
  if (!on) return null;
  return (
    <Panel
      title={
        <Link to="/clusters/$clusterId/people" params={{ clusterId: cluster.cluster_id }}>
          {cluster.cluster_name}
        </Link>
      }
    >
      <AccessStates on={on} />
      <p className="soft">
        Last report: <Reported clusterId={cluster.cluster_id} at={cluster.observed_at} />
      </p>
      {on.slurm?.account !== 'none' && on.slurm?.obstacle !== undefined && (
        <p>Cannot log in now: {obstacleText(on.slurm.obstacle)}</p>
      )}
      <Strip of={`people/${person.user_id}/${cluster.cluster_id}`} steps={steps} missing={missing} />
    </Panel>
  );
}

function exportRows(person: Person, rows: readonly Row[]): void {
  const head = ['address', 'cluster', 'opens', 'by', 'way', 'since', 'until'];
  const body = rows.map(({ cluster, way }) => [
    person.email,
    cluster.cluster_name,
    way.opens,
    way.by,
    wayText(way),
    way.since,
    way.until ?? '',
  ]);
  save('access-of-person.csv', 'text/csv', csv([head, ...body]));
}
