/** Members to whose access the last review gave an end: who they are, when they were last here, and keeping it. */
import { type Operation, operation } from '../../api.ts';
import { count } from '../../count.ts';
import { type Reviewed, useDue } from '../../review.ts';
import { useWho } from '../../who.tsx';
import { Button } from '../controls.tsx';
import { isWhole, Loaded, Panel, Problem } from '../page.tsx';
import { actions, type Column, PersonCell, Table } from '../table.tsx';
import { Age, Moment } from '../time.tsx';
import { useWrite } from '../write.tsx';

const columns: Column<Reviewed>[] = [
  { name: 'Person', cell: (row) => <PersonCell of={row} /> },
  { name: 'Permissions', cell: ({ permissions = [] }) => permissions.join(', ') },
  lastOf('Last sign-in', ({ last_sign_in_at: at }) => at),
  lastOf('Last SSH login', ({ last_ssh_login_at: at }) => at),
  { name: 'Ends', cell: ({ keep_by: at }) => at && <Moment at={at} /> },
];

function lastOf(name: string, at: (row: Reviewed) => string | undefined): Column<Reviewed> {
  const cell = (row: Reviewed) => {
    const time = at(row);
    return time === undefined ? <span className="soft">never</span> : <Age at={time} />;
  };
  return { name, cell };
}

/** Nothing while there is nothing to keep. `change`: what the page has to change or remove a member. */
export function KeepAccess({ change }: { change: (row: Reviewed) => void }) {
  const due = useDue();
  if (!due.error && !due.data?.total) return null;
  const whose = isWhole(due) ? `Access of ${count(due.data?.total ?? 0, 'member')}` : 'Access';
  return <Loaded of={due}>{({ people }) => <Due people={people} whose={whose} change={change} />}</Loaded>;
}

/** What each holds, without the end that the review gave: one write a member, each under a key of its own. */
function keeping(orgID: string): Operation<readonly Reviewed[], unknown> {
  return {
    name: `keep access in ${orgID}`,
    async send(people, header) {
      for (const { user_id: userID, permissions = [], expires_at: ends = {}, keep_by: end } of people) {
        const kept = Object.entries(ends).map(([key, at]) => [key, at === end ? null : at]);
        const key = `${header['Idempotency-Key']} ${userID}`;
        await operation('put', '/organizations/{orgID}/members/{userID}/permissions', { orgID, userID }).send(
          { permissions: [...permissions], expires_at: Object.fromEntries(kept) },
          { ...header, 'Idempotency-Key': key },
        );
      }
    },
  };
}

interface DueOptions {
  people: readonly Reviewed[];
  whose: string;
  change: (row: Reviewed) => void;
}

function Due({ people, whose, change }: DueOptions) {
  const { orgID } = useWho();
  const { mutate, isPending, error } = useWrite({
    operation: keeping(orgID),
    topics: [`members/${orgID}`],
    doneText: 'The access is kept.',
  });
  const keep = (body: readonly Reviewed[]) => mutate({ body, reason: 'Access reviewed' });
  const action: Column<Reviewed> = {
    name: actions,
    cell: (row) => (
      <>
        <Button
          className="second small"
          aria-label={`Keep the access of ${row.email}`}
          disabled={isPending}
          onClick={() => keep([row])}
        >
          Keep
        </Button>{' '}
        <Button
          className="second small"
          aria-label={`Change ${row.email} under review`}
          onClick={() => change(row)}
        >
          Change…
        </Button>
      </>
    ),
  };
  return (
    <Panel
      title={`${whose} ends unless you keep it`}
      cli="andromeda members review"
      operation={`GET /organizations/${orgID}/access-review?due=true`}
    >
      <p>It was given without an end, and nobody has changed it for so long that it is reviewed.</p>
      <Table name="to keep" rows={people} id={({ user_id: id }) => id} columns={[...columns, action]} />
      {error && <Problem error={error} />}
      <Button disabled={isPending} onClick={() => keep(people)}>
        Keep all
      </Button>
    </Panel>
  );
}
