/** What members ask for: approve with one click or for another term, or decline with a reason. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { termText } from '../../../domain/access/request.ts';
import { bodyOf, business } from '../api.ts';
import { type AccessRequest, ApprovalStrip, RequestState, TermSelect } from '../parts/access-requests.tsx';
import { ApprovalPlan } from '../parts/approval-plan.tsx';
import { AsCommand } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Empty, Loaded, Page, Panel, Problem } from '../parts/page.tsx';
import { Table } from '../parts/table.tsx';
import { Age } from '../parts/time.tsx';
import { useWrite, WriteForm, type WriteHeaders } from '../parts/write.tsx';
import { readAllRequests, readClusters, readRequests } from '../reads.ts';
import { useWho } from '../who.tsx';

interface Term {
  expires_at?: string | null;
}

type Doing = { kind: 'term' | 'decline'; request: AccessRequest } | undefined;

export function RequestsPage() {
  const who = useWho();
  const { orgID } = who;
  const open = useQuery(readRequests(orgID));
  const all = useQuery(readAllRequests(orgID));
  const clusters = useQuery(readClusters(who));
  const [doing, setDoing] = useState<Doing>();
  const names = new Map((clusters.data ?? []).map(({ id, spec }) => [id, spec.name]));
  const decided = (all.data?.requests ?? []).filter(({ state }) => state !== 'open');
  const newest = decided.find(({ state }) => state === 'approved');
  const close = () => setDoing(undefined);
  return (
    <Page title="Requests" sentence={open.data && <Sentence count={open.data.requests.length} />}>
      <Panel
        title="Pending"
        tools={
          <AsCommand
            api="Business"
            cli="andromeda access requests"
            operation={`GET /organizations/${orgID}/access-requests`}
          />
        }
      >
        <Loaded of={open}>
          {({ requests }) =>
            requests.length === 0 ? (
              <Empty>Members request access on their page “My access”.</Empty>
            ) : (
              requests.map((request) => (
                <Waiting
                  key={request.id}
                  request={request}
                  cluster={names.get(request.cluster_id ?? '')}
                  act={(kind) => setDoing({ kind, request })}
                />
              ))
            )
          }
        </Loaded>
      </Panel>
      {newest && (
        <Panel title={`Last approved: ${newest.email}`}>
          <p>
            <code>{newest.permissions.join(', ')}</code> <RequestState request={newest} />
          </p>
          <ApprovalStrip request={newest} />
        </Panel>
      )}
      <Panel title="Recent decisions">
        <Loaded of={all}>
          {() =>
            decided.length === 0 ? (
              <p className="soft">None yet.</p>
            ) : (
              <Table
                name="decided requests"
                rows={decided}
                id={({ id }) => id}
                text={(one) => `${one.email} ${one.permissions.join(' ')} ${one.state} ${one.reason}`}
                columns={[
                  { name: 'Person', cell: (one) => one.email },
                  { name: 'Permissions', cell: (one) => one.permissions.join(', ') },
                  { name: 'State', cell: (one) => <RequestState request={one} /> },
                  { name: 'Decided by', cell: (one) => one.decided_by ?? '–' },
                  { name: 'Reason', cell: (one) => one.decision_reason ?? one.reason },
                  { name: 'When', cell: (one) => <Age at={one.decided_at ?? one.created_at} /> },
                ]}
              />
            )
          }
        </Loaded>
      </Panel>
      {doing?.kind === 'term' && <OtherTerm request={doing.request} close={close} />}
      {doing?.kind === 'decline' && <Decline request={doing.request} close={close} />}
    </Page>
  );
}

function Sentence({ count }: { count: number }) {
  if (count === 0) return <>No pending requests.</>;
  return (
    <>
      {count} pending {count === 1 ? 'request' : 'requests'}.
    </>
  );
}

function Waiting({
  request,
  cluster,
  act,
}: {
  request: AccessRequest;
  cluster: string | undefined;
  act: (kind: 'term' | 'decline') => void;
}) {
  const { orgID, me } = useWho();
  const { email, permissions, hours, reason, created_at: since } = request;
  const approval = useWrite(approving(request, orgID));
  const isOwn = request.user_id === me.user.id;
  const [shownAt, setShownAt] = useState<number>();
  return (
    <section className="request" aria-label={`Request of ${email}`}>
      <p>
        <b>{email}</b> requests <code>{permissions.join(', ')}</code> {termText(hours)}
        {cluster && <> for {cluster}</>}. <span className="soft">{<Age at={since} />}</span>
      </p>
      <p>“{reason}”</p>
      {approval.error && <Problem error={approval.error} />}
      {isOwn ? (
        <p className="soft">You cannot decide on your own request.</p>
      ) : (
        <p className="buttons">
          <button
            type="button"
            aria-disabled={approval.isPending}
            onClick={() => {
              if (!approval.isPending) approval.mutate({ body: {}, reason: 'Approved as asked' });
            }}
          >
            Approve {termText(hours)}
          </button>
          <button type="button" className="second" onClick={() => act('term')}>
            Other duration…
          </button>
          <button type="button" className="second" onClick={() => act('decline')}>
            Decline…
          </button>
          <button
            type="button"
            className="link small"
            aria-expanded={shownAt !== undefined}
            onClick={() => setShownAt(shownAt === undefined ? Date.now() : undefined)}
          >
            Preview changes
          </button>
        </p>
      )}
      {shownAt !== undefined && <ApprovalPlan request={request} now={shownAt} />}
    </section>
  );
}

function approving({ id }: AccessRequest, orgID: string, onDone?: () => void) {
  const send = (body: Term, header: WriteHeaders) =>
    business
      .POST('/organizations/{orgID}/access-requests/{requestID}/approve', {
        params: { path: { orgID, requestID: id }, header },
        body,
      })
      .then(bodyOf);
  return {
    form: `access.approve.${id}`,
    send,
    topics: [`requests/${orgID}`, `members/${orgID}`],
    ...(onDone && { onDone }),
  };
}

function OtherTerm({ request, close }: { request: AccessRequest; close: () => void }) {
  const { orgID } = useWho();
  const [hours, setHours] = useState(7 * 24);
  const [until, setUntil] = useState('');
  // The moment is fixed when the term is chosen: the same form is the same change.
  const [from, setFrom] = useState(Date.now);
  const end = until !== '' ? new Date(until) : hours > 0 ? new Date(from + hours * 3_600_000) : undefined;
  const isAhead = end === undefined || end.getTime() > Date.now();
  return (
    <Dialog title={`Approve ${request.email} for another duration`} onClose={close}>
      <WriteForm
        write={approving(request, orgID, close)}
        body={isAhead ? { expires_at: end?.toISOString() ?? null } : undefined}
        label="Approve"
        usualReason="Approved for another duration"
        cancel={close}
      >
        <label htmlFor="other-term">Duration</label>
        <TermSelect
          id="other-term"
          hours={hours}
          onChange={(chosen) => {
            setHours(chosen);
            setUntil('');
            setFrom(Date.now());
          }}
        />
        <label htmlFor="until">
          Or until <span className="soft">(your local time)</span>
        </label>
        <input
          id="until"
          type="datetime-local"
          value={until}
          onChange={(event) => setUntil(event.target.value)}
        />
        <p role="status" className="soft small">
          {!isAhead
            ? 'That time has passed.'
            : end === undefined
              ? 'No end date.'
              : `Ends on ${end.toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'long' })}.`}
        </p>
        {isAhead && <ApprovalPlan request={request} term={end?.toISOString() ?? null} now={from} />}
      </WriteForm>
      <AsCommand
        api="Business"
        cli={`andromeda access approve ${request.id} --expires ${end?.toISOString() ?? 'never'}`}
        operation={`POST /organizations/${orgID}/access-requests/${request.id}/approve`}
      />
    </Dialog>
  );
}

function Decline({ request: { id, email }, close }: { request: AccessRequest; close: () => void }) {
  const { orgID } = useWho();
  const send = (_body: object, header: WriteHeaders) =>
    business
      .POST('/organizations/{orgID}/access-requests/{requestID}/decline', {
        params: { path: { orgID, requestID: id }, header },
      })
      .then(bodyOf);
  return (
    <Dialog title={`Decline the request of ${email}?`} onClose={close}>
      <WriteForm
        write={{ form: `access.decline.${id}`, send, topics: [`requests/${orgID}`], onDone: close }}
        body={{}}
        label="Decline"
        note={`${email} sees it; kept in the audit trail`}
        danger
        cancel={close}
      />
      <AsCommand
        api="Business"
        cli={`andromeda access decline ${id} --reason '…'`}
        operation={`POST /organizations/${orgID}/access-requests/${id}/decline`}
      />
    </Dialog>
  );
}
