/** With which identities a person signs in: taking one away, and making the account another identity's. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { bodyOf, business } from '../../api.ts';
import { installationTopics, type Person, readIdentities } from '../../installation.ts';
import { AsCommand } from '../copy.tsx';
import { Dialog } from '../dialog.tsx';
import { Loaded } from '../page.tsx';
import { Age } from '../time.tsx';
import { WriteForm, type WriteHeaders } from '../write.tsx';

interface Identity {
  issuer: string;
  subject: string;
  created_at: string;
}

export function Identities({
  person,
  mayAct,
  close,
}: {
  person: Person;
  mayAct: boolean;
  close: () => void;
}) {
  const identities = useQuery(readIdentities(person.id));
  const [unbinding, setUnbinding] = useState<Identity>();
  const [isBinding, setBinding] = useState(false);
  const back = () => {
    setUnbinding(undefined);
    setBinding(false);
  };
  const email = person.primary_email;
  return (
    <Dialog title={`How ${email} signs in`} onClose={close}>
      {unbinding ? (
        <Unbind person={person} identity={unbinding} back={back} />
      ) : isBinding ? (
        <Bind person={person} known={identities.data?.identities[0]} back={back} />
      ) : (
        <>
          <Loaded of={identities}>
            {({ identities: bound, unbound = [] }) => (
              <>
                {bound.length === 0 && (
                  <p>No identity is bound: the next sign-in with the verified address {email} binds one.</p>
                )}
                <List list={bound} act={mayAct ? setUnbinding : undefined} />
                {unbound.length > 0 && <h3>Unbound: an address does not bind these to an account again</h3>}
                <List list={unbound} act={undefined} />
              </>
            )}
          </Loaded>
          {mayAct && person.erased_at === undefined && (
            <div className="buttons">
              <button type="button" className="second" onClick={() => setBinding(true)}>
                Bind another…
              </button>
            </div>
          )}
          <AsCommand
            api="Business"
            cli={`andromeda admin person identities ${email}`}
            operation={`GET /operator/people/${person.id}/identities`}
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
            <button type="button" className="second small" onClick={() => act(one)}>
              Unbind…
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function Unbind({ person, identity, back }: { person: Person; identity: Identity; back: () => void }) {
  const { issuer, subject } = identity;
  const send = (body: { issuer: string; subject: string }, header: WriteHeaders) =>
    business
      .POST('/operator/people/{userID}/identities/unbind', {
        params: { path: { userID: person.id }, header },
        body,
      })
      .then(bodyOf);
  return (
    <>
      <p>
        <code>{subject}</code> at <code>{issuer}</code> can no longer sign in as {person.primary_email}, and
        an address does not bind it to an account again.
      </p>
      <WriteForm
        write={{ form: `person.unbind.${person.id}`, send, topics: installationTopics, onDone: back }}
        body={{ issuer, subject }}
        label="Unbind"
        danger
        cancel={back}
      />
    </>
  );
}

function Bind({ person, known, back }: { person: Person; known: Identity | undefined; back: () => void }) {
  const [issuer, setIssuer] = useState(known?.issuer ?? '');
  const [subject, setSubject] = useState('');
  const body =
    issuer.trim() === ''
      ? undefined
      : { issuer: issuer.trim(), ...(subject.trim() && { subject: subject.trim() }) };
  const send = (wanted: NonNullable<typeof body>, header: WriteHeaders) =>
    business
      .PUT('/operator/people/{userID}/identities', {
        params: { path: { userID: person.id }, header },
        body: wanted,
      })
      .then(bodyOf);
  return (
    <WriteForm
      write={{ form: `person.bind.${person.id}`, send, topics: installationTopics, onDone: back }}
      body={body}
      label="Bind"
      danger
      cancel={back}
    >
      <label htmlFor="issuer">Issuer (as in its tokens)</label>
      <input id="issuer" required value={issuer} onChange={(event) => setIssuer(event.target.value)} />
      <label htmlFor="subject">
        Subject <span className="soft">(empty: the next sign-in with the address)</span>
      </label>
      <input id="subject" value={subject} onChange={(event) => setSubject(event.target.value)} />
      <p role="status">
        {subject.trim() === ''
          ? `The next sign-in there with the verified address ${person.primary_email} is bound to this account.`
          : `${subject.trim()} is bound to this account and replaces the previous identity.`}
      </p>
    </WriteForm>
  );
}
