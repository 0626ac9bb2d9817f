/** For operators: accounts, their state and their staff keys. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { operation } from '../api.ts';
import { AsCommand, Button, Dialog, Empty, Field, Loaded, Page, Panel, said } from '../parts/page.tsx';
import { AddPerson, Lifecycle, type PersonOptions, StaffKeys } from '../parts/people/person-forms.tsx';
import { type Column, Table, Two } from '../parts/table.tsx';
import { Age, count, State } from '../parts/values.tsx';
import { useDraft, WriteForm } from '../parts/write.tsx';
import { holdsStaff, installationTopics, type Person, readIdentities, readPeople, useWho } from '../reads.ts';

type PersonAction = { kind: 'add' } | { kind: 'staff' | 'lifecycle' | 'identities'; person: Person };

export default function OperatorPeoplePage() {
  const { email = '' } = useSearch({ from: '/frame/operator/people' });
  const [pages, setPages] = useState(1);
  const people = useQuery(readPeople(email, pages));
  const mayAct = holdsStaff(useWho(), 'staff.operate');
  const [doing, setDoing] = useState<PersonAction>();
  return (
    <Page
      title="People"
      isWide
      sentence={said(people, ({ items, next }) => <Sentence people={items} hasMore={next !== undefined} />)}
      actions={mayAct && <Button onClick={() => setDoing({ kind: 'add' })}>Add person…</Button>}
    >
      <Find email={email} />
      <Panel title="People" cli="andromeda admin person list" operation="GET /operator/people">
        <Loaded of={people}>
          {({ items, next }) => (
            <>
              <PeopleTable people={items} act={setDoing} email={email} />
              {next !== undefined && (
                <Button className="second small more" onClick={() => setPages(pages * 2)}>
                  Show more people
                </Button>
              )}
            </>
          )}
        </Loaded>
      </Panel>
      {doing && <Form doing={doing} mayAct={mayAct} close={() => setDoing(undefined)} />}
    </Page>
  );
}

function Form({ doing, mayAct, close }: { doing: PersonAction; mayAct: boolean; close: () => void }) {
  if (doing.kind === 'add') return <AddPerson close={close} />;
  const { kind, person } = doing;
  if (kind === 'staff') return <StaffKeys person={person} close={close} />;
  if (kind === 'lifecycle') return <Lifecycle person={person} close={close} />;
  return <Identities person={person} mayAct={mayAct} close={close} />;
}

function Sentence({ people, hasMore }: { people: readonly Person[]; hasMore: boolean }) {
  const staff = people.filter(({ staff_keys: keys }) => keys.length > 0).length;
  const gone = people.filter(({ lifecycle_state: state }) => state === 'deactivated').length;
  const shown = `${hasMore ? 'The first ' : ''}${count(people.length, 'person', 'people')}`;
  return `${shown}: ${staff} staff, ${gone} deactivated.`;
}

/** Finds a person by email address on the server, since the page has only the first people. */
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
        Find by email
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

const columns: Column<Person>[] = [
  {
    name: 'Person',
    cell: ({ primary_email: email, display_name: name }) => (
      <Two first={<b>{email}</b>} second={name !== email && name} />
    ),
  },
  { name: 'State', cell: (one) => <AccountState person={one} /> },
  { name: 'Staff keys', cell: (one) => one.staff_keys.join(', ') || '–' },
  {
    name: 'Last sign-in',
    cell: ({ last_sign_in_at: at }) => (at === undefined ? 'never' : <Age at={at} />),
  },
  {
    name: 'Access expires',
    cell: ({ access_lapses_at: at }) => (at === undefined ? '–' : <Age at={at} />),
  },
];

interface TableOptions {
  people: readonly Person[];
  act: (doing: PersonAction) => void;
  email: string;
}

function PeopleTable({ people, act, email }: TableOptions) {
  return (
    <Table
      name="people"
      rows={people}
      id={({ id }) => id}
      columns={[...columns, { name: 'Actions', cell: (person) => <Actions person={person} act={act} /> }]}
      none={<Empty>No one has the email address {email}.</Empty>}
    />
  );
}

function Actions({ person, act }: { person: Person; act: (doing: PersonAction) => void }) {
  const mayAct = holdsStaff(useWho(), 'staff.operate');
  const isActive = person.lifecycle_state === 'active';
  const button = (kind: 'staff' | 'lifecycle' | 'identities', label: string) => (
    <Button className="second small" onClick={() => act({ kind, person })}>
      {label} <span className="hidden">of {person.primary_email}</span>
    </Button>
  );
  return (
    <span className="buttons inline">
      {button('identities', 'Identities…')}
      {mayAct && isActive && button('staff', 'Staff keys…')}
      {mayAct &&
        person.erased_at === undefined &&
        button('lifecycle', isActive ? 'Deactivate…' : 'Reactivate…')}
    </span>
  );
}

function AccountState({ person: { lifecycle_state: state, erased_at: erased } }: { person: Person }) {
  if (erased !== undefined) return <State kind="none">Erased</State>;
  return state === 'active' ? <State kind="good">Active</State> : <State kind="none">Deactivated</State>;
}

type Identity = components['schemas']['Identity'];

function Identities({ person, mayAct, close }: PersonOptions & { mayAct: boolean }) {
  const { id, primary_email: email, erased_at: erased } = person;
  const identities = useQuery(readIdentities(id));
  const [unbinding, setUnbinding] = useState<Identity>();
  const [isBinding, setBinding] = useState(false);
  const back = () => {
    setUnbinding(undefined);
    setBinding(false);
  };
  const form = unbinding ? (
    <Unbind person={person} identity={unbinding} back={back} />
  ) : (
    isBinding && <Bind person={person} known={identities.data?.identities[0]} back={back} />
  );
  return (
    <Dialog title={`How ${email} signs in`} onClose={close}>
      {form || (
        <>
          <Loaded of={identities}>
            {({ identities: bound, unbound = [] }) => (
              <>
                {bound.length === 0 && (
                  <p>
                    No identity is bound: the next sign-in with the verified email address {email} binds one.
                  </p>
                )}
                <List list={bound} act={mayAct ? setUnbinding : undefined} />
                {unbound.length > 0 && (
                  <h3>Unbound: an email address does not bind these to an account again</h3>
                )}
                <List list={unbound} act={undefined} />
              </>
            )}
          </Loaded>
          {mayAct && erased === undefined && (
            <div className="buttons">
              <Button className="second" onClick={() => setBinding(true)}>
                Bind another…
              </Button>
            </div>
          )}
          <AsCommand
            cli={`andromeda admin person identities ${email}`}
            operation={`GET /operator/people/${id}/identities`}
          />
        </>
      )}
    </Dialog>
  );
}

function List({ list, act }: { list: readonly Identity[]; act: ((identity: Identity) => void) | undefined }) {
  return (
    <ul className="plain">
      {list.map((one) => (
        <li key={`${one.issuer} ${one.subject}`}>
          <code>{one.subject}</code> at <code>{one.issuer}</code>,{' '}
          <span className="soft">
            since <Age at={one.created_at} past="" />
          </span>{' '}
          {act && (
            <Button className="second small" onClick={() => act(one)}>
              Unbind…
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

function Unbind({ person, identity, back }: { person: Person; identity: Identity; back: () => void }) {
  const { issuer, subject } = identity;
  return (
    <WriteForm
      operation={operation('post', '/operator/people/{userID}/identities/unbind', { userID: person.id })}
      topics={installationTopics}
      onDone={back}
      body={{ issuer, subject }}
      label="Unbind"
      danger
      cancel={back}
    >
      <p>
        <code>{subject}</code> at <code>{issuer}</code> can no longer sign in as {person.primary_email}, and
        an email address does not bind it to an account again.
      </p>
    </WriteForm>
  );
}

function Bind({ person, known, back }: { person: Person; known: Identity | undefined; back: () => void }) {
  const binding = operation('put', '/operator/people/{userID}/identities', { userID: person.id });
  const [issuer, setIssuer] = useDraft(binding.name, 'issuer', known?.issuer ?? '');
  const [subject, setSubject] = useDraft(binding.name, 'subject', '');
  const body = { issuer: issuer.trim(), ...(subject.trim() && { subject: subject.trim() }) };
  return (
    <WriteForm
      operation={binding}
      topics={installationTopics}
      onDone={back}
      body={issuer.trim() === '' ? undefined : body}
      label="Bind"
      danger
      cancel={back}
    >
      <Field id="issuer" label="Issuer (as in its tokens)" required value={issuer} onChange={setIssuer} />
      <Field
        id="subject"
        label="Subject"
        hint="empty: the next sign-in with the email address"
        value={subject}
        onChange={setSubject}
      />
      <p role="status">
        {subject.trim() === ''
          ? `The next sign-in there with the verified email address ${person.primary_email} is bound to this account.`
          : `${subject.trim()} is bound to this account and replaces the previous identity.`}
      </p>
    </WriteForm>
  );
}
