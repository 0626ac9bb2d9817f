/** With which identities a person signs in: taking one away, and making the account another identity's. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { components } from '../../../../api/generated/business.ts';
import { operation } from '../../api.ts';
import { useDraft } from '../../drafts.ts';
import { installationTopics, type Person, readIdentities } from '../../reads.ts';
import { Button, Field } from '../controls.tsx';
import { AsCommand } from '../copy.tsx';
import { Dialog } from '../dialog.tsx';
import { Loaded } from '../page.tsx';
import { Age } from '../time.tsx';
import { WriteForm } from '../write.tsx';
import type { PersonOptions } from './person-forms.tsx';

type Identity = components['schemas']['Identity'];

export function Identities({ person, mayAct, close }: PersonOptions & { mayAct: boolean }) {
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
