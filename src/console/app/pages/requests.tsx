/** What members ask for: approve with one click or for another term, or decline with a reason. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { approvedEnd, termText, withApproved } from '../../../domain/access/request.ts';
import { operation } from '../api.ts';
import { type AccessRequest, ApprovalStrip, RequestState, TermSelect } from '../parts/access-requests.tsx';
import { Consequences, usePlan } from '../parts/consequences.tsx';
import { Button, Empty, Field, Loaded, Page, Panel, Problem, said } from '../parts/page.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Age, count, Text } from '../parts/values.tsx';
import { useDraft, useWrite, WriteDialog } from '../parts/write.tsx';
import type { MemberChange } from '../people.ts';
import { readMemberPermissions, readRequests, useClusterNames, useWho } from '../reads.ts';

export default function RequestsPage() {
  const { orgID } = useWho();
  const open = useQuery(readRequests(orgID, 'open'));
  const [doing, setDoing] = useState<{ kind: 'term' | 'decline'; request: AccessRequest } | undefined>();
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
      {doing?.kind === 'term' && <OtherTerm request={doing.request} close={close} />}
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
          <ApprovalStrip request={newest} />
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

function Waiting({ request, act }: { request: AccessRequest; act: (kind: 'term' | 'decline') => void }) {
  const { email, permissions, hours, reason, created_at: since } = request;
  const approval = useWrite(approving(request));
  const cluster = useClusterNames().get(request.cluster_id ?? '') ?? request.cluster_id;
  const isOwn = request.user_id === useWho().me.user.id;
  const [shownAt, setShownAt] = useState<number>();
  return (
    <section className="request" aria-label={`Request of ${email}`}>
      <p>
        <b>{email}</b> requests <code>{permissions.join(', ')}</code> {termText(hours)}
        {cluster && <> for {cluster}</>}. <span className="soft">{<Age at={since} />}</span>
      </p>
      <p>
        “<Text of={reason} />”
      </p>
      {approval.error && <Problem error={approval.error} />}
      {isOwn ? (
        <p className="soft">You cannot decide on your own request.</p>
      ) : (
        <p className="buttons">
          <Button
            aria-disabled={approval.isPending}
            onClick={() => {
              if (!approval.isPending) approval.mutate({ body: {}, reason: 'Approved as asked' });
            }}
          >
            Approve {termText(hours)}
          </Button>
          <Button className="second" onClick={() => act('term')}>
            Other duration…
          </Button>
          <Button className="second" onClick={() => act('decline')}>
            Decline…
          </Button>
          <Button
            className="link small"
            aria-expanded={shownAt !== undefined}
            onClick={() => setShownAt(shownAt === undefined ? Date.now() : undefined)}
          >
            Preview changes
          </Button>
        </p>
      )}
      {shownAt !== undefined && <ApprovalPlan request={request} now={shownAt} />}
    </section>
  );
}

function approving({ id, organization_id: orgID }: AccessRequest) {
  const path = '/organizations/{orgID}/access-requests/{requestID}/approve';
  return {
    operation: operation('post', path, { orgID, requestID: id }),
    topics: [`requests/${orgID}`, `members/${orgID}`],
    doneText: 'Approved.',
  };
}

function OtherTerm({ request, close }: { request: AccessRequest; close: () => void }) {
  const approval = approving(request);
  const form = approval.operation.name;
  const [hours, setHours] = useDraft(form, 'hours', 7 * 24);
  const [until, setUntil] = useDraft(form, 'until', '');
  // The moment is fixed when the term is chosen: the same form is the same change.
  const [opened] = useState(Date.now);
  const [from, setFrom] = useDraft(form, 'from', opened);
  const end = until !== '' ? new Date(until) : hours > 0 ? new Date(from + hours * 3_600_000) : undefined;
  const isAhead = end === undefined || end.getTime() > Date.now();
  const term = isAhead ? (end?.toISOString() ?? null) : undefined;
  const choose = (chosen: number) => {
    setHours(chosen);
    setUntil('');
    setFrom(Date.now());
  };
  return (
    <WriteDialog
      {...approval}
      title={`Approve ${request.email} for another duration`}
      body={term === undefined ? undefined : { expires_at: term }}
      label="Approve"
      usualReason="Approved for another duration"
      cli={`andromeda access approve ${request.id} --expires ${term ?? 'never'}`}
      close={close}
    >
      <TermSelect id="other-term" label="Duration" value={hours} onChange={choose} />
      <Field
        id="until"
        label="Or until"
        hint="your local time"
        type="datetime-local"
        value={until}
        onChange={setUntil}
      />
      <p role="status" className="soft small">
        {!isAhead
          ? 'That time has passed.'
          : end === undefined
            ? 'No end date.'
            : `Ends on ${end.toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'long' })}.`}
      </p>
      {term !== undefined && <ApprovalPlan request={request} term={term} now={from} />}
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

interface PlanOptions {
  request: AccessRequest;
  term?: string | null;
  now: number;
}

/** What approving it would do on the clusters. `term`: another end than was asked for; `now`: settled when it is opened, so that one plan is asked for once. */
function ApprovalPlan({ request: { user_id: userId, permissions, hours }, term, now }: PlanOptions) {
  const members = useQuery(readMemberPermissions(useWho()));
  const held = members.data?.members.find(({ user_id: id }) => id === userId);
  const changes: MemberChange[] = [];
  if (held) {
    const before = held.permissions.map((key) => ({ key, expiresAt: held.expires_at?.[key] ?? null }));
    const after = withApproved(before, permissions, approvedEnd({ hours: hours ?? null }, term, now));
    changes.push({
      change: 'permissions',
      user_id: userId,
      permissions: after.map(({ key }) => key),
      expires_at: Object.fromEntries(after.map(({ key, expiresAt }) => [key, expiresAt])),
    });
  }
  const plan = usePlan(changes);
  return <Loaded of={members}>{() => <Consequences of={plan} />}</Loaded>;
}
