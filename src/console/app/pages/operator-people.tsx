/** For operators: people with an account, and who of them is staff. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { type Person, readPeople } from '../installation.ts';
import { AsCommand } from '../parts/copy.tsx';
import { InstallationNav } from '../parts/installation-nav.tsx';
import { Empty, Loaded, Page, Panel } from '../parts/page.tsx';
import { AddPerson, Lifecycle, StaffKeys } from '../parts/people/person-forms.tsx';
import { Identities } from '../parts/people/person-identities.tsx';
import { State } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { holdsStaff, useWho } from '../who.tsx';

type Doing = { kind: 'add' } | { kind: 'staff' | 'lifecycle' | 'identities'; person: Person };

export function OperatorPeoplePage() {
  const { email = '' } = useSearch({ from: '/frame/operator/people' });
  const [pages, setPages] = useState(1);
  const people = useQuery(readPeople(email, pages));
  const mayAct = holdsStaff(useWho(), 'staff.operate');
  const [doing, setDoing] = useState<Doing>();
  const close = () => setDoing(undefined);
  return (
    <Page
      title="People and staff"
      isWide
      sentence={people.data && <Sentence people={people.data.people} hasMore={people.data.hasMore} />}
      actions={
        mayAct && (
          <button type="button" onClick={() => setDoing({ kind: 'add' })}>
            Add person…
          </button>
        )
      }
    >
      <InstallationNav />
      <Find email={email} />
      <Panel
        title="People"
        tools={
          <AsCommand api="Business" cli="andromeda admin person list" operation="GET /operator/people" />
        }
      >
        <Loaded of={people}>
          {(data) =>
            data.people.length === 0 ? (
              <Empty>No one has the address {email}.</Empty>
            ) : (
              <>
                <PeopleTable people={data.people} act={setDoing} mayAct={mayAct} />
                {data.hasMore && (
                  <button type="button" className="second small more" onClick={() => setPages(pages * 2)}>
                    Read more people
                  </button>
                )}
              </>
            )
          }
        </Loaded>
      </Panel>
      {doing?.kind === 'add' && <AddPerson close={close} />}
      {doing?.kind === 'staff' && <StaffKeys person={doing.person} close={close} />}
      {doing?.kind === 'lifecycle' && <Lifecycle person={doing.person} close={close} />}
      {doing?.kind === 'identities' && <Identities person={doing.person} mayAct={mayAct} close={close} />}
    </Page>
  );
}

function Sentence({ people, hasMore }: { people: readonly Person[]; hasMore: boolean }) {
  const staff = people.filter(({ staff_keys: keys }) => keys.length > 0).length;
  const gone = people.filter(({ lifecycle_state: state }) => state === 'deactivated').length;
  return (
    <>
      {hasMore ? 'The first ' : ''}
      {people.length} {people.length === 1 ? 'person' : 'people'}: {staff} staff, {gone} deactivated.
    </>
  );
}

/** An address is asked of the server, which has all of them. */
function Find({ email }: { email: string }) {
  const navigate = useNavigate({ from: '/operator/people' });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const wanted = String(new FormData(event.currentTarget).get('email') ?? '').trim();
    void navigate({ search: wanted === '' ? {} : { email: wanted } });
  };
  return (
    <form className="audit-filters" onSubmit={submit} key={email}>
      <label>
        Whole address
        <input name="email" type="text" defaultValue={email} maxLength={200} />
      </label>
      <div className="buttons">
        <button type="submit" className="second">
          Find
        </button>
      </div>
    </form>
  );
}

function PeopleTable({
  people,
  act,
  mayAct,
}: {
  people: readonly Person[];
  act: (doing: Doing) => void;
  mayAct: boolean;
}) {
  const columns: Column<Person>[] = [
    {
      name: 'Person',
      cell: (one) => (
        <div className="two">
          <b>{one.primary_email}</b>
          {one.display_name !== one.primary_email && <span>{one.display_name}</span>}
        </div>
      ),
    },
    { name: 'State', cell: (one) => <AccountState person={one} /> },
    { name: 'Staff keys', cell: (one) => one.staff_keys.join(', ') || '–' },
    {
      name: 'Signed in',
      cell: ({ last_sign_in_at: at }) => (at === undefined ? 'never' : <Age at={at} />),
    },
    {
      name: 'Access expires',
      cell: ({ access_lapses_at: at }) => (at === undefined ? '–' : <Age at={at} />),
    },
    {
      name: 'Actions',
      cell: (person) => (
        <span className="buttons inline">
          <Button kind="identities" person={person} act={act}>
            Identities…
          </Button>
          {mayAct && person.lifecycle_state === 'active' && (
            <Button kind="staff" person={person} act={act}>
              Staff keys…
            </Button>
          )}
          {mayAct && person.erased_at === undefined && (
            <Button kind="lifecycle" person={person} act={act}>
              {person.lifecycle_state === 'active' ? 'Deactivate…' : 'Reactivate…'}
            </Button>
          )}
        </span>
      ),
    },
  ];
  return (
    <Table
      name="people"
      rows={people}
      id={({ id }) => id}
      text={(one) =>
        `${one.primary_email} ${one.display_name} ${one.lifecycle_state} ${one.staff_keys.join(' ')}`
      }
      columns={columns}
    />
  );
}

function Button({
  kind,
  person,
  act,
  children,
}: {
  kind: 'staff' | 'lifecycle' | 'identities';
  person: Person;
  act: (doing: Doing) => void;
  children: string;
}) {
  return (
    <button type="button" className="second small" onClick={() => act({ kind, person })}>
      {children} <span className="hidden">of {person.primary_email}</span>
    </button>
  );
}

function AccountState({ person: { lifecycle_state: state, erased_at: erased } }: { person: Person }) {
  if (erased !== undefined) return <State kind="none">Erased</State>;
  return state === 'active' ? <State kind="good">Active</State> : <State kind="none">Deactivated</State>;
}
