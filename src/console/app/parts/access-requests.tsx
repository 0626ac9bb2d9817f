/** Requests for permissions, or for more time with them, and the state of requests. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { termText } from '../../../domain/access/request.ts';
import { operation } from '../api.ts';
import { readAccessOf } from '../people.ts';
import {
  type ClusterUse,
  readCatalog,
  readOwnPermissions,
  readOwnRequests,
  useClusterNames,
  useWho,
} from '../reads.ts';
import { Button, CheckList, type Labelled, Loaded, Panel, Select } from './page.tsx';
import { AccessStrip } from './people/access-state.tsx';
import { terms } from './people/permission-choice.tsx';
import { Age, type Kind, Moment, State, Text } from './values.tsx';
import { useDraft, WriteDialog } from './write.tsx';

export type AccessRequest = components['schemas']['AccessRequest'];

const usualTerm = 7 * 24;
const firstKeys = ['clusters.read', 'clusters.ssh'];

/** The value is in hours; 0 means no end. */
export function TermSelect({ asked = usualTerm, ...field }: Labelled<number> & { asked?: number }) {
  const offered = [...new Set([...terms, asked, 0])];
  return <Select {...field} options={offered.map((one) => [one, termText(one || undefined)] as const)} />;
}

export interface WantedAccess {
  keys: readonly string[];
  cluster?: ClusterUse | undefined;
}

export function AskAccess({ wish: { keys, cluster }, close }: { wish: WantedAccess; close: () => void }) {
  const { orgID } = useWho();
  const catalog = useQuery(readCatalog());
  const asking = operation('post', '/organizations/{orgID}/access-requests', { orgID });
  const of = cluster?.cluster_id ?? '';
  const [wanted, setWanted] = useDraft(asking.name, `keys ${of}`, keys);
  const [hours, setHours] = useDraft<number>(asking.name, `hours ${of}`, usualTerm);
  const body = {
    permissions: wanted.toSorted(),
    ...(cluster && { cluster_id: cluster.cluster_id }),
    ...(hours > 0 && { hours }),
  };
  const term = hours > 0 ? `${hours}h` : 'good';
  return (
    <WriteDialog
      title={cluster ? `Request access to ${cluster.cluster_name}` : 'Request access'}
      operation={asking}
      topics={['requests', `requests/${orgID}`]}
      body={wanted.length > 0 ? body : undefined}
      label="Send request"
      note="the approver sees it; kept in the audit trail"
      cli={`andromeda access request ${wanted.join(' ') || 'clusters.ssh'} --for ${term} --reason '…'`}
      close={close}
    >
      <Loaded of={catalog}>
        {(all) => (
          <CheckList
            legend={<legend>Permissions</legend>}
            items={all.map(({ key, description }) => ({ key, hint: description }))}
            chosen={wanted}
            onChange={setWanted}
          />
        )}
      </Loaded>
      <TermSelect id="term" label="Duration" hint="from approval" value={hours} onChange={setHours} />
      <p className="soft small">Permissions apply to every cluster of the organization.</p>
    </WriteDialog>
  );
}

const states: Record<AccessRequest['state'], [Kind, string]> = {
  open: ['busy', 'Pending'],
  approved: ['good', 'Approved'],
  declined: ['bad', 'Declined'],
  withdrawn: ['none', 'Withdrawn'],
  lapsed: ['none', 'Expired without a decision'],
};

export function RequestState({ request }: { request: AccessRequest }) {
  const { state, expires_at: end, lapses_at: lapse, removed = false } = request;
  const hasEnded = state === 'approved' && end !== undefined && Date.parse(end) <= Date.now();
  const over = removed ? 'Taken away again' : hasEnded ? 'Ended' : undefined;
  const [kind, label] = over === undefined ? states[state] : (['none', over] as const);
  return (
    <>
      <State kind={kind}>{label}</State>{' '}
      {state === 'open' && lapse && (
        <span className="soft">
          expires <Age at={lapse} />
        </span>
      )}
      {state === 'approved' && !removed && <Ends at={end} />}
    </>
  );
}

function Ends({ at }: { at: string | undefined }) {
  return at === undefined ? 'no end date' : <>until {<Moment at={at} />}</>;
}

export function ApprovalProgress({ request }: { request: AccessRequest }) {
  const { organization_id: orgID, user_id: userID } = request;
  const access = useQuery(readAccessOf(orgID, [userID]));
  return (
    <Loaded of={access}>
      {({ people, clusters }) =>
        clusters.map((cluster) => (
          <section key={cluster.cluster_id}>
            <h3>{cluster.cluster_name}</h3>
            <AccessStrip people={people} cluster={cluster} />
          </section>
        ))
      }
    </Loaded>
  );
}

export function OwnAccess({ ask }: { ask: (wish: WantedAccess) => void }) {
  const { orgID, me, membership } = useWho();
  const isMember = membership?.role === 'member';
  const held = useQuery({ ...readOwnPermissions(orgID, me.user.id), enabled: isMember });
  const requests = useQuery({ ...readOwnRequests(), enabled: isMember });
  if (!isMember) return null;
  return (
    <Panel title="My permissions" cli="andromeda access list" operation="GET /me/access-requests">
      <Loaded of={held}>
        {({ permissions, expires_at: ends = {} }) => (
          <>
            {permissions.length === 0 && <p>You have no permissions in this organization.</p>}
            <ul className="plain">
              {permissions.map((key) => (
                <li key={key}>
                  <code>{key}</code> <Ends at={ends[key]} />
                </li>
              ))}
            </ul>
            <p className="buttons">
              <Button onClick={() => ask({ keys: permissions.length === 0 ? firstKeys : [] })}>
                Request access…
              </Button>
              {Object.keys(ends).length > 0 && (
                <Button className="second" onClick={() => ask({ keys: Object.keys(ends) })}>
                  Request more time…
                </Button>
              )}
            </p>
          </>
        )}
      </Loaded>
      <Loaded of={requests}>
        {({ requests: all }) =>
          all
            .filter(({ organization_id: id }) => id === orgID)
            .slice(0, 5)
            .map((request, index) => <OwnRequest key={request.id} request={request} isNewest={index === 0} />)
        }
      </Loaded>
    </Panel>
  );
}

function OwnRequest({ request, isNewest }: { request: AccessRequest; isNewest: boolean }) {
  const [isWithdrawing, setWithdrawing] = useState(false);
  const { id, permissions, hours, state, reason, decision_reason: answer, decided_by: by } = request;
  const name = useClusterNames().get(request.cluster_id ?? '') ?? request.cluster_id;
  return (
    <section className="request" aria-label={`Request for ${permissions.join(', ')}`}>
      <p>
        <RequestState request={request} />
      </p>
      <p>
        <code>{permissions.join(', ')}</code> {termText(hours)}
        {name && <> for {name}</>}: “<Text of={reason} />”{' '}
        {state === 'open' && (
          <Button className="second small" onClick={() => setWithdrawing(true)}>
            Withdraw…
          </Button>
        )}
      </p>
      {answer && (
        <p className="soft">
          {by}: “<Text of={answer} />”
        </p>
      )}
      {isNewest && state === 'approved' && !request.removed && <ApprovalProgress request={request} />}
      {isWithdrawing && (
        <WriteDialog
          title="Withdraw this request?"
          operation={operation('post', '/me/access-requests/{requestID}/withdraw', { requestID: id })}
          topics={['requests', `requests/${request.organization_id}`]}
          body={{}}
          label="Withdraw"
          usualReason="No longer needed"
          cli={`andromeda access withdraw ${id}`}
          close={() => setWithdrawing(false)}
        />
      )}
    </section>
  );
}
