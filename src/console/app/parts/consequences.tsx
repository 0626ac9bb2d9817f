/** What a change of members would do on the clusters, shown before it is saved. */
import { useIsMutating, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { type MemberChange, type MemberPlan, readPlan, useSettled } from '../people.ts';
import { useWho } from '../reads.ts';
import { Problem } from './page.tsx';
import { count, firstOf, State } from './values.tsx';

const pauseMs = 250;

/** The plan of these changes; undefined while there is none, as while the person types. */
export function usePlan(changes: MemberChange[]) {
  const { orgID } = useWho();
  const wanted = JSON.stringify(changes);
  const settled = useSettled(wanted, pauseMs);
  // No plan is read while the change is being made: it would report the change as made already.
  const isSending = useIsMutating() > 0;
  const plan = useQuery({
    ...readPlan(orgID, JSON.parse(settled) as MemberChange[]),
    enabled: settled !== '[]' && !isSending,
  });
  const isCurrent = settled === wanted && changes.length > 0;
  return {
    plan: isCurrent ? plan.data : undefined,
    error: isCurrent ? plan.error : null,
    isWaiting: changes.length > 0 && (!isCurrent || plan.isPending),
  };
}

interface ConsequencesOptions {
  of: ReturnType<typeof usePlan>;
  children?: ReactNode;
}

export function Consequences({ of: { plan, error, isWaiting }, children }: ConsequencesOptions) {
  return (
    <section className="plan" aria-label="What will change" aria-busy={isWaiting}>
      <h3>What will change</h3>
      {error ? (
        <Problem error={error} />
      ) : (
        <div role="status">
          {plan ? (
            <Effects plan={plan} />
          ) : (
            <p className="soft">{isWaiting ? 'Loading…' : 'No changes yet.'}</p>
          )}
          {plan?.changes.some(({ result }) => result === 'planned') && children}
        </div>
      )}
    </section>
  );
}

function Effects({ plan: { changes, clusters } }: { plan: MemberPlan }) {
  const refused = changes.filter(({ result }) => result === 'refused');
  const joined = changes.filter((one) => one.change === 'add' && one.result === 'planned');
  return (
    <>
      {refused.length > 0 && (
        <ul>
          {refused.map((one) => (
            <li key={one.email + (one.user_id ?? '')}>
              <State kind="warn">Not possible</State> {one.message}
            </li>
          ))}
        </ul>
      )}
      {joined.length > 0 && (
        <p>
          {joined.length === 1 ? 'A new member: ' : `${joined.length} new members: `}
          {joined.map(({ email, username }) => `${email} (${username})`).join(', ')}.
        </p>
      )}
      {clusters.map((one) => (
        <OnCluster key={one.cluster_id} effect={one} />
      ))}
      {clusters.length === 0 && changes.length > refused.length && (
        <p>Nothing changes on the clusters: no account, no restart, no job, no session.</p>
      )}
    </>
  );
}

const parts = {
  login: 'login nodes',
  controller: 'the Slurm controller',
  accounting: 'accounting',
  compute: 'compute nodes one at a time',
} as const;

function OnCluster({ effect }: { effect: MemberPlan['clusters'][number] }) {
  const { added, removed, waiting_for_key: waiting, restarts, rollout, kubernetes } = effect;
  const { ended_jobs: jobs, ended_sessions: sessions } = effect;
  const isSlurm = added.length + removed.length > 0;
  const jobNames = jobs.map(({ id, user, name }) => `${id} ${name} (${user})`);
  const users = [...new Set(sessions.map(({ username }) => username))];
  return (
    <div className="effect">
      <h4>{effect.cluster_name}</h4>
      <ul>
        {added.length > 0 && <li>Login accounts added once an SSH key is registered: {added.join(', ')}.</li>}
        {removed.length > 0 && <li>Login accounts removed: {removed.join(', ')}. Home directories stay.</li>}
        {waiting.length > 0 && (
          <li>
            {waiting.join(', ')} {waiting.length === 1 ? 'gets' : 'get'} a login account after registering an
            SSH key.
          </li>
        )}
        {restarts.length > 0 && <li>Restarts: {restarts.map((part) => parts[part]).join(', then ')}.</li>}
        {isSlurm && restarts.length === 0 && (
          <li>Nothing restarts{rollout === 'live' && ' (rollout: live)'}.</li>
        )}
        {sessions.length > 0 && (
          <li>
            <State kind="warn">Ends</State> {count(sessions.length, 'open SSH session')}, of{' '}
            {users.join(', ')}.
          </li>
        )}
        {jobs.length > 0 && (
          <li>
            <State kind="warn">Ends</State> {count(jobs.length, 'running job')}: {firstOf(jobNames, mostJobs)}
            .
          </li>
        )}
        {isSlurm && jobs.length === 0 && <li>No running job ends.</li>}
        {kubernetes.map(({ username, before, after }) => (
          <li key={username}>
            Kubernetes: {username} from {before ?? 'nothing'} to {after ?? 'nothing'}.
          </li>
        ))}
      </ul>
    </div>
  );
}

const mostJobs = 10;
