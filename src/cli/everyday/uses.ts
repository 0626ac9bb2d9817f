/** What the caller can do on clusters, as the service says it, and what to type next. */
import { visibleLine } from '../../domain/text.ts';
import { printer } from '../answer.ts';
import type { Reader } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { pick } from '../pick.ts';
import { reads } from '../verb.ts';
import { findMe } from './caller.ts';

export type ClusterUse = Business['ClusterUse'];

const ways = ['ssh', 'kubernetes'] as const;

interface Row {
  way: (typeof ways)[number];
  name: string;
  use: Business['Use'];
}

/** The clusters that the caller sees or may use; only the one that is named, where one is. */
export async function readUses(api: Reader, wanted: string | undefined): Promise<ClusterUse[]> {
  const { clusters } = await api.get('/me/access');
  if (wanted === undefined) return clusters;
  return [pick(['cluster', 'clusters'], clusters, wanted, (one) => [one.cluster_name, one.cluster_id])];
}

/** Both ways into a cluster. */
export function rowsOf(cluster: ClusterUse): Row[] {
  return ways.map((way) => ({ way, name: visibleLine(cluster.cluster_name), use: cluster[way] }));
}

/** What to type; undefined where the caller can do nothing. */
export function commandFor({ way, name, use: { reason, next } }: Row): string | undefined {
  if (reason === 'ready') return way === 'ssh' ? `andromeda ssh ${name}` : `andromeda kubeconfig ${name}`;
  if (reason === 'no_keys' || reason === 'key_lapsed') return 'andromeda keys add';
  if (reason === 'sign_in_lapsed') return 'andromeda auth login';
  if (reason === 'applying') return `andromeda wait ${way === 'ssh' ? 'key' : 'permission'}`;
  return next === 'you' ? `andromeda access request clusters.${way}` : undefined;
}

const table = printer<Row>(
  {
    CLUSTER: ({ name }) => name,
    WAY: ({ way }) => way,
    STATE: ({ use }) => use.state,
    NEXT: ({ use }) => use.next,
    UNTIL: ({ use }) => use.expires_at,
    TYPE: (row) => commandFor(row),
    WHAT: ({ use }) => use.message,
  },
  'There is no cluster that you can see or use yet. `andromeda access request clusters.read clusters.ssh` asks.',
);

export const showAccess = reads({
  usage: 'show [cluster]',
  summary: 'what you can do on each cluster; where not, what is missing and who acts next',
  example: 'access show alpha',
  isUsual: true,
  async run({ api }, wanted) {
    // For its notices: of access that ends, and why.
    const [clusters] = await Promise.all([readUses(api, wanted), findMe(api)]);
    return table.many({ clusters }, clusters.flatMap(rowsOf));
  },
});
