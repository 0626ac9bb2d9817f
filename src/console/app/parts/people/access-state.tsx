/** A person's access to one cluster, as marks and text. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { opensText, wayText } from '../../../../domain/access/ways-in.ts';
import { type ClusterAccess, type Delivery, type MemberAccess, progressOf, type Way } from '../../people.ts';
import { Strip } from '../strip.tsx';
import { Age, type Kind, State, Text } from '../values.tsx';

const kinds: Record<NonNullable<ClusterAccess['kubernetes']>['state'], Kind> = {
  applied: 'good',
  pending: 'busy',
  failed: 'bad',
  unknown: 'none',
  none: 'none',
};
export const accounts = {
  ready: 'account ready',
  waiting_for_key: 'needs a key',
  none: 'no account',
} as const;

export function AccessStates({ on: { slurm, kubernetes } }: { on: ClusterAccess }) {
  const hasAccount = slurm?.state !== 'applied' || slurm.account === 'ready';
  return (
    <>
      {slurm && (
        <Side kind={hasAccount ? kinds[slurm.state] : 'none'} message={slurm.message}>
          Slurm: {accounts[slurm.account]}
          {slurm.state !== 'applied' && `, ${slurm.state}`}
        </Side>
      )}
      {kubernetes && (
        <Side kind={kinds[kubernetes.state]} message={kubernetes.message}>
          Kubernetes: {kubernetes.state}
        </Side>
      )}
    </>
  );
}

/** The progress of a change of these people on one cluster. */
export function AccessStrip({ people, cluster }: { people: readonly MemberAccess[]; cluster: Delivery }) {
  const { steps, missing } = progressOf(people, cluster);
  const ids = people.map(({ user_id: id }) => id).join();
  return <Strip of={`people/${ids}/${cluster.cluster_id}`} steps={steps} missing={missing} />;
}

function Side({ kind, message, children }: { kind: Kind; message: string | undefined; children: ReactNode }) {
  return (
    <div>
      <State kind={kind}>{children}</State>
      {message !== undefined && (
        <div className="soft">
          <Text of={message} />
        </div>
      )}
    </div>
  );
}

export function PeopleLink({ of }: { of: Delivery }) {
  return (
    <Link to="/clusters/$clusterId/people" params={{ clusterId: of.cluster_id }}>
      {of.cluster_name}
    </Link>
  );
}

export function Until({ at }: { at: string | undefined }) {
  return at === undefined ? <span className="soft">no end date</span> : <Age at={at} />;
}

export function WayIn({ way }: { way: Way }) {
  return (
    <span>
      {opensText[way.opens]} <span className="soft">({wayText(way)})</span>
    </span>
  );
}

/** Reasons why a person cannot log in at the moment, in the third person. */
const obstacles: Record<string, string> = {
  key_revoked: 'They have no active key.',
  access_removed: 'They have no SSH access.',
  sign_in_lapsed: 'They have not signed in for too long; signing in restores access.',
  key_lapsed: 'Their keys are too old; a new key restores access.',
  security_key_off: 'They have security keys only, which are not accepted.',
  security_key_required: 'They hold staff keys and have no security key, which staff need.',
  cluster_inactive: 'The cluster is not in service.',
  named_user_required: 'They have no user name here.',
  no_keys: 'They have registered no SSH key yet.',
  no_login_nodes: 'The cluster has no login nodes.',
  access_not_projected: 'The cluster does not have their account yet.',
  gateway_unavailable: 'No login node answers.',
  observation_stale: 'The cluster has not reported for several minutes. Logins are closed until it does.',
  projection_pending: 'The cluster has not applied their keys yet.',
  projection_failed: 'The cluster could not apply the list.',
};

export function obstacleText(obstacle: string): string {
  return obstacles[obstacle] ?? obstacle;
}
