/** A change of people, followed until every cluster has it. Its address names them, so that it can be looked at again. */
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { Empty, Loaded, Page, Panel, said } from '../parts/page.tsx';
import { PeopleLink, PersonLink } from '../parts/people/access-state.tsx';
import { State } from '../parts/state.tsx';
import { Strip } from '../parts/strip.tsx';
import { Age, LastReport } from '../parts/time.tsx';
import { type Delivery, type Person, progressOf, readAccessOf } from '../people.ts';
import { useWho } from '../who.tsx';

export default function MemberChangePage() {
  const { orgID } = useWho();
  const { people = '' } = useSearch({ from: '/frame/members/change' });
  const ids = people.split(',').filter(Boolean);
  const access = useQuery({ ...readAccessOf(orgID, ids), enabled: ids.length > 0 });
  return (
    <Page
      title="Progress"
      sentence={said(access, (known) => <Sentence {...known} />)}
      actions={<Link to="/members">Members</Link>}
    >
      {ids.length === 0 ? (
        <Empty action={<Link to="/members">Members</Link>}>No one is named in this address.</Empty>
      ) : (
        <Loaded of={access}>
          {(known) => (
            <>
              <Who people={known.people} ids={ids} />
              {known.clusters.map((cluster) => (
                <OnCluster key={cluster.cluster_id} people={known.people} cluster={cluster} />
              ))}
            </>
          )}
        </Loaded>
      )}
    </Page>
  );
}

function Sentence({ people, clusters }: { people: readonly Person[]; clusters: readonly Delivery[] }) {
  const there = clusters.filter((one) => progressOf(people, one).isThere).length;
  if (people.length === 0) return <>None of these people is in the organization.</>;
  if (clusters.length === 0) return <>No cluster in service is affected.</>;
  if (there === clusters.length)
    return <>{there === 1 ? 'The cluster is' : `All ${there} clusters are`} up to date.</>;
  return `${there} of ${clusters.length} clusters are up to date.`;
}

function Who({ people, ids }: { people: readonly Person[]; ids: readonly string[] }) {
  const { orgID } = useWho();
  return (
    <Panel
      title={people.length === 1 ? 'Who' : `${people.length} people`}
      cli={`andromeda members access ${people.map(({ user_id: id }) => id).join(' ')}`}
      operation={`GET /organizations/${orgID}/access?user_ids=${ids.join(',')}`}
    >
      <ul className="plain">
        {people.map((person) => (
          <li key={person.user_id}>
            <PersonLink id={person.user_id} email={person.email} />{' '}
            <span className="soft">
              {person.is_member ? person.role : 'not a member'}
              {person.username !== undefined && `, ${person.username}`}
              {person.changed_at !== undefined && (
                <>
                  , changed <Age at={person.changed_at} />
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function OnCluster({ people, cluster }: { people: readonly Person[]; cluster: Delivery }) {
  const { steps, missing, isThere } = progressOf(people, cluster);
  return (
    <Panel
      title={<PeopleLink of={cluster} />}
      tools={isThere ? <State kind="good">Up to date</State> : <State kind="busy">In progress</State>}
    >
      <Strip
        of={`people/${people.map(({ user_id: id }) => id).join()}/${cluster.cluster_id}`}
        steps={steps}
        missing={missing}
      />
      <LastReport clusterId={cluster.cluster_id} at={cluster.observed_at} />
    </Panel>
  );
}
