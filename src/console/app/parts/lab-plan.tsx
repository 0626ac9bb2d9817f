/** What a lab file would change, or has changed: each change, what restarts, and whose jobs end. */
import type { LabPlan } from '../installation.ts';
import { type Kind, State } from './state.tsx';
import { Table } from './table.tsx';

type Change = LabPlan['changes'][number];
type Restart = LabPlan['restarts'][number];

const actions: Record<Change['action'], { kind: Kind; word: string }> = {
  create: { kind: 'good', word: 'Create' },
  update: { kind: 'busy', word: 'Change' },
  remove: { kind: 'bad', word: 'Remove' },
};

export function Plan({ plan: { changes, restarts }, none }: { plan: LabPlan; none: string }) {
  if (changes.length === 0) return <p>{none}</p>;
  return (
    <>
      <Table
        name="changes"
        rows={changes}
        id={({ action, kind, name }) => `${action} ${kind} ${name}`}
        text={({ action, kind, name, details }) => `${action} ${kind} ${name} ${details}`}
        columns={[
          {
            name: 'Change',
            cell: ({ action }) => <State kind={actions[action].kind}>{actions[action].word}</State>,
          },
          { name: 'What', cell: ({ kind }) => kind },
          { name: 'Name', cell: ({ name }) => <span className="long">{name}</span> },
          { name: 'Details', cell: ({ details }) => <span className="long">{details}</span> },
        ]}
      />
      {restarts.length > 0 && <h3>Effect on clusters</h3>}
      <ul className="plain">
        {restarts.map((one) => (
          <li key={one.cluster_id}>
            <b>{one.cluster_name}</b>: {describe(one)}
          </li>
        ))}
      </ul>
    </>
  );
}

function describe({ added, removed, restarts, rollout, ended_jobs: jobs }: Restart): string {
  const parts = [
    added.length > 0 ? `accounts added: ${added.join(', ')}` : '',
    removed.length > 0 ? `accounts removed: ${removed.join(', ')}` : '',
    rollout === 'live' || restarts.length === 0 ? 'nothing restarts' : `restarts ${restarts.join(', ')}`,
    jobs.length > 0 ? `jobs end: ${jobs.map(({ id, user }) => `${id} of ${user}`).join(', ')}` : '',
  ];
  return `${parts.filter((part) => part !== '').join('; ')}.`;
}
