/** What a person can do on clusters, in words: the state of each way, who acts next, and all of them in a sentence. */
import type { ReactNode } from 'react';
import type { ClusterUse, Use } from '../../reads.ts';
import { type Kind, State } from '../state.tsx';

const states: Record<Use['state'], [Kind, string]> = {
  ready: ['good', 'Ready'],
  missing: ['warn', 'Not ready'],
  pending: ['busy', 'Being applied'],
  failed: ['bad', 'Failed'],
  none: ['none', 'Not offered'],
};

const nextTexts: Record<NonNullable<Use['next']>, string | undefined> = {
  you: undefined,
  manager: 'An owner or admin of the organization acts next.',
  operator: 'An operator acts next.',
  service: undefined,
};

/** One way in a sentence; `children`: what the person can do about it. */
export function UseLine({ way, use, children }: { way: string; use: Use; children?: ReactNode }) {
  const isLacking = use.state === 'missing' && !use.granted;
  const [kind, label] = isLacking ? (['none', 'No access'] as const) : states[use.state];
  const next = use.next && nextTexts[use.next];
  return (
    <p className="verdict">
      <b>{way}</b> <State kind={kind}>{label}</State>{' '}
      <span role={use.granted ? 'status' : undefined}>{use.message}</span>
      {next !== undefined && <span className="soft"> {next}</span>} {children}
    </p>
  );
}

/** `You can log in to alpha and use kubectl on beta.`; what is missing where nothing works. */
export function UsesSentence({ uses }: { uses: readonly ClusterUse[] }) {
  const on = (way: 'ssh' | 'kubernetes') => uses.filter((use) => use[way].state === 'ready');
  const [ssh, kubectl] = [on('ssh'), on('kubernetes')];
  const [lacking] = uses.flatMap((use) => [use.ssh, use.kubernetes]).filter(({ granted }) => granted);
  if (ssh.length + kubectl.length === 0)
    return <>{lacking?.message ?? 'You have no access to a cluster yet. Request it on “Access”.'}</>;
  return (
    <>
      You can {ssh.length > 0 && <>log in to {<Names of={ssh} />}</>}
      {ssh.length > 0 && kubectl.length > 0 && ' and '}
      {kubectl.length > 0 && <>use kubectl on {<Names of={kubectl} />}</>}.
    </>
  );
}

const mostNamed = 5;

function Names({ of: uses }: { of: readonly ClusterUse[] }) {
  const names = uses.map(({ cluster_name: name }) => name);
  return (
    <b>{names.length > mostNamed ? `${names.length} clusters` : new Intl.ListFormat('en').format(names)}</b>
  );
}
