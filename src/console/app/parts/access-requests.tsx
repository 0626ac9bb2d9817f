/** Asking for permissions, or for more time with them; and what became of that. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { components } from '../../../api/generated/business.ts';
import { termText } from '../../../domain/access/request.ts';
import { bodyOf, business } from '../api.ts';
import {
  type ClusterItem,
  readCatalog,
  readMemberAccess,
  readOwnPermissions,
  readOwnRequests,
} from '../reads.ts';
import { useWho } from '../who.tsx';
import { AsCommand } from './copy.tsx';
import { Dialog } from './dialog.tsx';
import { Loaded, Panel } from './page.tsx';
import { type Kind, State } from './state.tsx';
import { type Step, Strip } from './strip.tsx';
import { Age, Moment } from './time.tsx';
import { WriteForm, type WriteHeaders } from './write.tsx';

export type AccessRequest = components['schemas']['AccessRequest'];

/** Terms that are offered, in hours; 0: without an end. */
const terms = [4, 24, 7 * 24, 30 * 24, 90 * 24, 365 * 24, 0] as const;
const usualTerm = 7 * 24;
/** The permissions that a person without any needs to log in. */
const firstKeys = ['clusters.read', 'clusters.ssh'];

export function TermSelect({
  id,
  hours,
  onChange,
}: {
  id: string;
  hours: number;
  onChange: (hours: number) => void;
}) {
  return (
    <select id={id} value={hours} onChange={(event) => onChange(Number(event.target.value))}>
      {terms.map((one) => (
        <option key={one} value={one}>
          {termText(one || undefined)}
        </option>
      ))}
    </select>
  );
}

interface Asked {
  permissions: string[];
  cluster_id?: string;
  hours?: number;
}

/** What is asked for at first: `keys`, on account of `cluster`. */
export interface Wish {
  keys: readonly string[];
  cluster?: ClusterItem | undefined;
}

export function AskAccess({ wish, close }: { wish: Wish; close: () => void }) {
  const { orgID } = useWho();
  const catalog = useQuery(readCatalog());
  const [wanted, setWanted] = useState<readonly string[]>(wish.keys);
  const [hours, setHours] = useState<number>(usualTerm);
  const { cluster } = wish;
  const body = {
    permissions: wanted.toSorted(),
    ...(cluster && { cluster_id: cluster.id }),
    ...(hours > 0 && { hours }),
  };
  const send = (sent: Asked, header: WriteHeaders) =>
    business
      .POST('/organizations/{orgID}/access-requests', {
        params: { path: { orgID }, header },
        body: sent,
      })
      .then(bodyOf);
  const toggle = (key: string) =>
    setWanted(wanted.includes(key) ? wanted.filter((one) => one !== key) : [...wanted, key]);
  const keys = (catalog.data?.permissions ?? []).filter(({ key }) => !key.startsWith('organization.'));
  return (
    <Dialog title={cluster ? `Request access to ${cluster.spec.name}` : 'Request access'} onClose={close}>
      <WriteForm
        write={{
          form: `access.request.${orgID}`,
          send,
          topics: ['requests', `requests/${orgID}`],
          onDone: close,
        }}
        body={wanted.length > 0 ? body : undefined}
        label="Send request"
        note="the approver sees it; kept in the audit trail"
        cancel={close}
      >
        <fieldset>
          <legend>Permissions</legend>
          {keys.map(({ key, description }) => (
            <label key={key} className="check">
              <input type="checkbox" checked={wanted.includes(key)} onChange={() => toggle(key)} />
              <span>
                <code>{key}</code> <span className="soft">{description}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <label htmlFor="term">
          Duration <span className="soft">(from approval)</span>
        </label>
        <TermSelect id="term" hours={hours} onChange={setHours} />
        <p className="soft small">Permissions apply to every cluster of the organization.</p>
      </WriteForm>
      <AsCommand
        api="Business"
        cli={`andromeda access request ${wanted.join(' ') || 'clusters.ssh'} --for ${hours > 0 ? `${hours}h` : 'good'} --reason '…'`}
        operation={`POST /organizations/${orgID}/access-requests`}
      />
    </Dialog>
  );
}

const states: Record<AccessRequest['state'], [Kind, string]> = {
  open: ['busy', 'Pending'],
  approved: ['good', 'Approved'],
  declined: ['bad', 'Declined'],
  withdrawn: ['none', 'Withdrawn'],
  lapsed: ['none', 'Expired without a decision'],
};

/** The state of a request in a shape and words, and until when. */
export function RequestState({ request }: { request: AccessRequest }) {
  const { state, expires_at: end, lapses_at: lapse } = request;
  const hasEnded = state === 'approved' && end !== undefined && Date.parse(end) <= Date.now();
  const [kind, label] = hasEnded ? (['none', 'Ended'] as const) : states[state];
  return (
    <>
      <State kind={kind}>{label}</State>{' '}
      {state === 'open' && lapse && (
        <span className="soft">
          expires <Age at={lapse} />
        </span>
      )}
      {state === 'approved' && (end === undefined ? 'no end date' : <>until {<Moment at={end} />}</>)}
    </>
  );
}

/** How far what was approved has come on the clusters. */
export function ApprovalStrip({ request }: { request: AccessRequest }) {
  const { organization_id: orgID, user_id: userID } = request;
  const access = useQuery(readMemberAccess(orgID, userID));
  if (!access.data) return null;
  const sides = access.data.people.flatMap(({ clusters }) => clusters);
  const names = new Map(access.data.clusters.map((one) => [one.cluster_id, one.cluster_name]));
  const late = sides.filter(
    ({ slurm, kubernetes }) =>
      (slurm && slurm.state !== 'applied') || (kubernetes && !['applied', 'none'].includes(kubernetes.state)),
  );
  const isAccepted = sides.every(({ slurm }) => slurm === undefined || slurm.accepted);
  const message = late.flatMap(({ slurm, kubernetes }) => slurm?.message ?? kubernetes?.message ?? [])[0];
  const steps: Step[] = [
    { name: 'Requested', state: 'done', at: request.created_at },
    { name: 'Approved', state: 'done', at: request.decided_at },
    { name: 'Sent to clusters', state: isAccepted ? 'done' : 'busy' },
    {
      name: 'Applied',
      state: !isAccepted ? 'waiting' : late.length === 0 ? 'done' : message ? 'failed' : 'busy',
    },
  ];
  const missing = late.map(({ cluster_id: id }) => names.get(id) ?? id).join(', ');
  return (
    <Strip of={`request/${request.id}`} steps={steps} missing={message ?? `Not applied yet on ${missing}.`} />
  );
}

/** What the person holds until when, what they asked for, and asking for more. */
export function OwnAccess({
  clusters,
  ask,
}: {
  clusters: readonly ClusterItem[];
  ask: (wish: Wish) => void;
}) {
  const { orgID, me, membership } = useWho();
  const held = useQuery(readOwnPermissions(orgID, me.user.id));
  const requests = useQuery(readOwnRequests());
  const own = (requests.data?.requests ?? []).filter(({ organization_id: id }) => id === orgID);
  const names = new Map(clusters.map(({ id, spec }) => [id, spec.name]));
  if (membership?.role !== 'member') return null;
  const ending = Object.keys(held.data?.expires_at ?? {});
  return (
    <Panel
      title="My permissions"
      tools={<AsCommand api="Business" cli="andromeda access list" operation="GET /me/access-requests" />}
    >
      <Loaded of={held}>
        {({ permissions, expires_at: ends = {} }) => (
          <>
            {permissions.length === 0 && <p>You have no permissions in this organization.</p>}
            <ul className="plain">
              {permissions.map((key) => (
                <li key={key}>
                  <code>{key}</code>{' '}
                  {ends[key] === undefined ? 'no end date' : <>until {<Moment at={ends[key]} />}</>}
                </li>
              ))}
            </ul>
            <p className="buttons">
              <button type="button" onClick={() => ask({ keys: permissions.length === 0 ? firstKeys : [] })}>
                Request access…
              </button>
              {ending.length > 0 && (
                <button type="button" className="second" onClick={() => ask({ keys: ending })}>
                  Request more time…
                </button>
              )}
            </p>
          </>
        )}
      </Loaded>
      {own.slice(0, 5).map((request, index) => (
        <OwnRequest
          key={request.id}
          request={request}
          name={names.get(request.cluster_id ?? '')}
          isNewest={index === 0}
        />
      ))}
    </Panel>
  );
}

function OwnRequest({
  request,
  name,
  isNewest,
}: {
  request: AccessRequest;
  name: string | undefined;
  isNewest: boolean;
}) {
  const [isWithdrawing, setWithdrawing] = useState(false);
  const { permissions, hours, state, reason, decision_reason: answer, decided_by: by } = request;
  return (
    <section className="request" aria-label={`Request for ${permissions.join(', ')}`}>
      <p>
        <RequestState request={request} />
      </p>
      <p>
        <code>{permissions.join(', ')}</code> {termText(hours)}
        {name && <> for {name}</>}: “{reason}”{' '}
        {state === 'open' && (
          <button type="button" className="second small" onClick={() => setWithdrawing(true)}>
            Withdraw…
          </button>
        )}
      </p>
      {answer && (
        <p className="soft">
          {by}: “{answer}”
        </p>
      )}
      {isNewest && state === 'approved' && <ApprovalStrip request={request} />}
      {isWithdrawing && <Withdraw request={request} close={() => setWithdrawing(false)} />}
    </section>
  );
}

function Withdraw({
  request: { id, organization_id: orgID },
  close,
}: {
  request: AccessRequest;
  close: () => void;
}) {
  const send = (_body: object, header: WriteHeaders) =>
    business
      .POST('/me/access-requests/{requestID}/withdraw', { params: { path: { requestID: id }, header } })
      .then(bodyOf);
  return (
    <Dialog title="Withdraw this request?" onClose={close}>
      <WriteForm
        write={{
          form: `access.withdraw.${id}`,
          send,
          topics: ['requests', `requests/${orgID}`],
          onDone: close,
        }}
        body={{}}
        label="Withdraw"
        usualReason="No longer needed"
        cancel={close}
      />
      <AsCommand
        api="Business"
        cli={`andromeda access withdraw ${id}`}
        operation={`POST /me/access-requests/${id}/withdraw`}
      />
    </Dialog>
  );
}
