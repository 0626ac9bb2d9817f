/** Members' access requests: approve as requested or for another term, with a preview, or decline with a reason. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { termText } from '../../../domain/access/request.ts';
import { operation } from '../api.ts';
import { type AccessRequest, ApprovalProgress, RequestState, TermSelect } from '../parts/access-requests.tsx';
import { Consequences, usePlan } from '../parts/consequences.tsx';
import { Button, Empty, Loaded, Page, Panel, said } from '../parts/page.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age, count, momentText, Text } from '../parts/values.tsx';
import { useDraft, WriteDialog } from '../parts/write.tsx';
import { endedBy } from '../people.ts';
import { readRequests, useClusterNames, useWho } from '../reads.ts';

export default function RequestsPage() {
  const { orgID } = useWho();
  const open = useQuery(readRequests(orgID, 'open'));
  const [doing, setDoing] = useState<{ kind: 'approve' | 'decline'; request: AccessRequest } | undefined>();
  const close = () => setDoing(undefined);
  return (
    <Page
      title="Requests"
      sentence={said(open, ({ requests: { length } }) =>
        length === 0 ? 'No pending requests.' : `${count(length, 'pending request')}.`,
      )}
    >
      <Panel
        title="Pending"
        cli="andromeda access requests"
        operation={`GET /organizations/${orgID}/access-requests`}
      >
        <Loaded of={open}>
          {({ requests }) =>
            requests.length === 0 ? (
              <Empty>Members request access on their page “Access”.</Empty>
            ) : (
              requests.map((request) => (
                <Waiting key={request.id} request={request} act={(kind) => setDoing({ kind, request })} />
              ))
            )
          }
        </Loaded>
      </Panel>
      <Decided />
      {doing?.kind === 'approve' && <Approve request={doing.request} close={close} />}
      {doing?.kind === 'decline' && <Decline request={doing.request} close={close} />}
    </Page>
  );
}

const columns: Column<AccessRequest>[] = [
  { name: 'Person', cell: (one) => <b>{one.email}</b> },
  { name: 'Permissions', cell: (one) => one.permissions.join(', ') },
  { name: 'State', cell: (one) => <RequestState request={one} /> },
  { name: 'Decided by', cell: (one) => one.decided_by ?? '–' },
  { name: 'Reason', cell: (one) => <Text of={one.decision_reason ?? one.reason} /> },
  { name: 'When', cell: (one) => <Age at={one.decided_at ?? one.created_at} /> },
];

function Decided() {
  const all = useQuery(readRequests(useWho().orgID, 'all'));
  const decided = (all.data?.requests ?? []).filter(({ state }) => state !== 'open');
  const newest = decided.find(({ state }) => state === 'approved');
  return (
    <>
      {newest && (
        <Panel title={`Last approved: ${newest.email}`}>
          <p>
            <code>{newest.permissions.join(', ')}</code> <RequestState request={newest} />
          </p>
          <ApprovalProgress request={newest} />
        </Panel>
      )}
      <Panel title="Recent decisions">
        <Table
          name="decided requests"
          of={all}
          rows={all.data && decided}
          id={({ id }) => id}
          text={(one) => `${one.email} ${one.permissions.join(' ')} ${one.state} ${one.reason}`}
          columns={columns}
          none={<p className="soft">None yet.</p>}
        />
      </Panel>
    </>
  );
}

function Waiting({ request, act }: { request: AccessRequest; act: (kind: 'approve' | 'decline') => void }) {
  const { email, permissions, hours, reason, created_at: since } = request;
  const cluster = useClusterNames().get(request.cluster_id ?? '') ?? request.cluster_id;
  const isOwn = request.user_id === useWho().me.user.id;
  return (
    <section className="request" aria-label={`Request of ${email}`}>
      <p>
        <b>{email}</b> requests <code>{permissions.join(', ')}</code> {termText(hours)}
        {cluster && <> for {cluster}</>}. <span className="soft">{<Age at={since} />}</span>
      </p>
      <p>
        “<Text of={reason} />”
      </p>
      {isOwn ? (
        <p className="soft">You cannot decide on your own request.</p>
      ) : (
        <p className="buttons">
          <Button onClick={() => act('approve')}>Approve…</Button>
          <Button className="second" onClick={() => act('decline')}>
            Decline…
          </Button>
        </p>
      )}
    </section>
  );
}

/** The end of an approved request: by the requested term, or by a chosen one. */
function useTerm(form: string, asked: number) {
  const [hours, setHours] = useDraft(form, 'hours', asked);
  // The term starts when it is chosen, so that sending again has the same body and idempotency key.
  const [opened] = useState(Date.now);
  const [from, setFrom] = useDraft(form, 'from', opened);
  const end = hours > 0 ? new Date(from + hours * 3_600_000).toISOString() : null;
  const choose = (chosen: number) => {
    setHours(chosen);
    setFrom(Date.now());
  };
  const body: { expires_at?: string | null } = hours === asked ? {} : { expires_at: end };
  return { hours, choose, end, body };
}

function Approve({ request, close }: { request: AccessRequest; close: () => void }) {
  const { id, email, organization_id: orgID, hours: asked = 0 } = request;
  const path = '/organizations/{orgID}/access-requests/{requestID}/approve';
  const approving = operation('post', path, { orgID, requestID: id });
  const { hours, choose, end, body } = useTerm(approving.name, asked);
  const consequences = usePlan([{ change: 'approve', request_id: id, ...body }]);
  const expires = body.expires_at === undefined ? '' : ` --expires ${body.expires_at ?? 'never'}`;
  return (
    <WriteDialog
      title={`Approve the request of ${email}?`}
      operation={approving}
      topics={[`requests/${orgID}`, `members/${orgID}`]}
      body={body}
      label="Approve"
      usualReason={expires === '' ? 'Approved as asked' : 'Approved for another duration'}
      isWaiting={consequences.isWaiting}
      ends={endedBy(consequences.plan)}
      cli={`andromeda access approve ${id}${expires}`}
      close={close}
    >
      <TermSelect id="term" label="Duration" asked={asked} value={hours} onChange={choose} />
      <p role="status" className="soft small">
        {end === null ? 'No end date.' : `Ends on ${momentText(end)}.`}
      </p>
      <Consequences of={consequences} />
    </WriteDialog>
  );
}

function Decline({ request, close }: { request: AccessRequest; close: () => void }) {
  const { id, email, organization_id: orgID } = request;
  const path = '/organizations/{orgID}/access-requests/{requestID}/decline';
  return (
    <WriteDialog
      title={`Decline the request of ${email}?`}
      operation={operation('post', path, { orgID, requestID: id })}
      topics={[`requests/${orgID}`]}
      body={{}}
      label="Decline"
      note={`${email} sees it; kept in the audit trail`}
      danger
      cli={`andromeda access decline ${id} --reason '…'`}
      close={close}
    />
  );
}
