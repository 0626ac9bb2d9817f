/** The consequences of a change of members or keys on the clusters, shown before it is saved. */
import type { ReactNode } from 'react';
import { restartsText } from '../../../domain/slurm/restarts.ts';
import {
  type Effect,
  jobsOf,
  type MemberChange,
  type MemberPlan,
  readPlan,
  useReadPlan,
  useSettled,
} from '../people.ts';
import { useWho } from '../reads.ts';
import { Effects, Problem } from './page.tsx';
import { count, firstOf, State } from './values.tsx';

const pauseMs = 250;

/** Reads the plan of these changes; undefined until it is loaded, and while the person types. */
export function usePlan(changes: MemberChange[]): ReturnType<typeof useReadPlan> {
  const { orgID } = useWho();
  const wanted = JSON.stringify(changes);
  const settled = useSettled(wanted, pauseMs);
  const isCurrent = settled === wanted && changes.length > 0;
  const read = useReadPlan({
    ...readPlan(orgID, JSON.parse(settled) as MemberChange[]),
    enabled: isCurrent,
  });
  return isCurrent ? read : { plan: undefined, error: null, isWaiting: changes.length > 0 };
}

interface ConsequencesOptions {
  of: ReturnType<typeof useReadPlan>;
  children?: ReactNode;
}

export function Consequences({ of: { plan, error, isWaiting }, children }: ConsequencesOptions) {
  return (
    <Effects isWaiting={isWaiting}>
      {error && <Problem error={error} />}
      {!error && plan && <Planned plan={plan} />}
      {!error && !plan && <p className="soft">{isWaiting ? 'Loading…' : 'No changes yet.'}</p>}
      {!error && plan?.changes.some(({ result }) => result === 'planned') && children}
    </Effects>
  );
}

function Planned({ plan: { changes, clusters } }: { plan: MemberPlan }) {
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

function Ended({ of: effect, word }: { of: Effect; word: string }) {
  const { ended_jobs: jobs, ended_sessions: sessions, other_sessions: more = 0 } = effect;
  const names = jobs.map(({ id, user, name }) => `${id} ${name} (${user})`);
  const users = [...new Set(sessions.map(({ username }) => username))];
  return (
    <>
      {sessions.length + more > 0 && (
        <li>
          <State kind="warn">{word}</State> {count(sessions.length + more, 'open SSH session')}
          {users.length > 0 && `, of ${firstOf(users, mostNames)}`}.
        </li>
      )}
      {jobsOf(effect) > 0 && (
        <li>
          <State kind="warn">{word}</State> {count(jobsOf(effect), 'running job')}
          {names.length > 0 && `: ${firstOf(names, mostNames, jobsOf(effect))}`}.
        </li>
      )}
    </>
  );
}

function OnCluster({ effect }: { effect: Effect }) {
  const { added, once_keyed: later = [], removed, waiting_for_key: waiting } = effect;
  const { restarts, rollout, kubernetes } = effect;
  const isSlurm = added.length + removed.length > 0;
  const atOnce = added.filter((username) => !later.includes(username));
  const isLater = later.length > 0 && atOnce.length + removed.length === 0;
  return (
    <div className="effect">
      <h4>{effect.cluster_name}</h4>
      <ul>
        {atOnce.length > 0 && <li>Login accounts added: {atOnce.join(', ')}.</li>}
        {later.length > 0 && (
          <li>
            Login accounts added once they have an SSH key, at once if they have one: {later.join(', ')}.
          </li>
        )}
        {removed.length > 0 && <li>Login accounts removed: {removed.join(', ')}. Home directories stay.</li>}
        {waiting.length > 0 && (
          <li>
            {waiting.join(', ')} {waiting.length === 1 ? 'gets' : 'get'} a login account after registering an
            SSH key.
          </li>
        )}
        {restarts.length > 0 && (
          <li>
            {isLater ? 'Then restarts' : 'Restarts'}: {restartsText(restarts)}.
          </li>
        )}
        {isSlurm && restarts.length === 0 && (
          <li>Nothing restarts{rollout === 'live' && ' (rollout: live)'}.</li>
        )}
        <Ended of={effect} word={isLater ? 'Then ends' : 'Ends'} />
        {effect.unknown_jobs && <li>Running jobs may end: which run is not known at the moment.</li>}
        {isSlurm && jobsOf(effect) === 0 && !effect.unknown_jobs && <li>No running job ends.</li>}
        {kubernetes.map(({ username, before, after }) => (
          <li key={username}>
            Kubernetes: {username} from {before ?? 'nothing'} to {after ?? 'nothing'}.
          </li>
        ))}
      </ul>
    </div>
  );
}

const mostNames = 10;
