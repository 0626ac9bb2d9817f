/** Members whose access owners are asked to confirm: who they are, when they were last here, and keeping all of it. */
import { operation } from '../../api.ts';
import { count } from '../../count.ts';
import { type Reviewed, useDue } from '../../review.ts';
import { useWho } from '../../who.tsx';
import { Button } from '../controls.tsx';
import { isWhole, Loaded, Panel, Problem } from '../page.tsx';
import { actionOf, type Column, PersonCell, Table } from '../table.tsx';
import { Age, Moment } from '../time.tsx';
import { useWrite } from '../write.tsx';

const columns: Column<Reviewed>[] = [
  { name: 'Person', cell: (row) => <PersonCell of={row} /> },
  { name: 'Permissions', cell: ({ permissions = [] }) => permissions.join(', ') },
  lastOf('Last sign-in', ({ last_sign_in_at: at }) => at),
  lastOf('Last SSH login', ({ last_ssh_login_at: at }) => at),
  {
    name: 'Confirm by',
    cell: ({ confirm_by: at }) => at && <Moment at={at} />,
  },
];

function lastOf(name: string, at: (row: Reviewed) => string | undefined): Column<Reviewed> {
  const cell = (row: Reviewed) => {
    const time = at(row);
    return time === undefined ? <span className="soft">never</span> : <Age at={time} />;
  };
  return { name, cell };
}

/** Nothing while there is nothing to confirm. `change`: what the page has to change or remove a member. */
export function ConfirmAccess({ change }: { change: (row: Reviewed) => void }) {
  const due = useDue();
  if (!due.error && !due.data?.total) return null;
  const whose = isWhole(due) ? `Access of ${count(due.data?.total ?? 0, 'member')}` : 'Access';
  return <Loaded of={due}>{({ people }) => <Due people={people} whose={whose} change={change} />}</Loaded>;
}

interface DueOptions {
  people: readonly Reviewed[];
  whose: string;
  change: (row: Reviewed) => void;
}

function Due({ people, whose, change }: DueOptions) {
  const { orgID, isManager } = useWho();
  const { mutate, isPending, error } = useWrite({
    operation: operation('post', '/organizations/{orgID}/access-review/confirm', { orgID }),
    topics: [`members/${orgID}`],
    doneText: 'The access is confirmed.',
  });
  const [first] = people.flatMap(({ confirm_by: at }) => at ?? []).sort();
  if (first === undefined) return null;
  // Those who are shown, and no one who came to the list since.
  const body = { user_ids: people.map(({ user_id: id }) => id) };
  return (
    <Panel
      title={`${whose} is to be confirmed`}
      cli="andromeda members review"
      operation={`GET /organizations/${orgID}/access-review?due=true`}
    >
      <p>
        The first by <Moment at={first} />. What is not confirmed by then ends 30 days later; what ends
        already for want of that can be kept until its end.
      </p>
      <Table
        name="to confirm"
        rows={people}
        id={({ user_id: id }) => id}
        columns={[...columns, actionOf('Change…', change, ({ email }) => `Change ${email} under review`)]}
      />
      {error && <Problem error={error} />}
      {isManager && (
        <Button disabled={isPending} onClick={() => mutate({ body, reason: 'Access reviewed' })}>
          Keep all
        </Button>
      )}
    </Panel>
  );
}
