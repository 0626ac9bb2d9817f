/** `andromeda access`: the caller's access, requests for permissions, and decisions on others' requests. */
import { termText } from '../../domain/access/request.ts';
import { visibleLine } from '../../domain/text.ts';
import { parseSpan, pick } from '../arguments.ts';
import { usage } from '../exit.ts';
import type { Business, Reader } from '../net/api.ts';
import { listed, printer } from '../output.ts';
import { confirmPlan } from '../plan-text.ts';
import { type Noun, optional, reads, writes, yesFlag } from '../verb.ts';
import { findCluster, findMe, type OrgOptions, orgFlag, orgPath } from './caller.ts';
import { endOf, expand, expiresFlag } from './members.ts';

type AccessRequest = Business['AccessRequest'];

const hourMs = 3_600_000;

const own = printer<AccessRequest>(
  {
    PERMISSIONS: (row) => listed(row.permissions),
    TERM: (row) => termText(row.hours),
    STATE: (row) => (row.removed ? 'approved,removed' : row.state),
    UNTIL: (row) => row.expires_at,
    'DECIDED BY': (row) => row.decided_by,
    ANSWER: (row) => row.decision_reason,
    ID: (row) => row.id,
  },
  'You have asked for nothing. `andromeda access request clusters.ssh` asks.',
);

const asked = printer<AccessRequest>(
  {
    EMAIL: (row) => row.email,
    PERMISSIONS: (row) => listed(row.permissions),
    TERM: (row) => termText(row.hours),
    REASON: (row) => row.reason,
    CLUSTER: (row) => row.cluster_id,
    STATE: (row) => row.state,
    ASKED: (row) => row.created_at,
    ID: (row) => row.id,
  },
  'There are no requests.',
);

function hoursOf(text: string): number | undefined {
  if (text === 'good') return undefined;
  const hours = parseSpan('--for', text) / hourMs;
  if (hours < 1) throw usage('--for takes at least an hour, such as 4h or 7d, or good.');
  return Math.ceil(hours);
}

export type ClusterUse = Business['ClusterUse'];

const ways = ['ssh', 'kubernetes'] as const;

interface UseRow {
  way: (typeof ways)[number];
  name: string;
  use: Business['Use'];
}

export async function readUses(api: Reader, wanted: string | undefined): Promise<ClusterUse[]> {
  const { clusters } = await api.get('/me/access');
  if (wanted === undefined) return clusters;
  return [pick(['cluster', 'clusters'], clusters, wanted, (one) => [one.cluster_name, one.cluster_id])];
}

export function rowsOf(cluster: ClusterUse): UseRow[] {
  return ways.map((way) => ({ way, name: visibleLine(cluster.cluster_name), use: cluster[way] }));
}

export function commandFor({ way, name, use: { reason, next } }: UseRow): string | undefined {
  if (reason === 'ready') return way === 'ssh' ? `andromeda ssh ${name}` : `andromeda kubeconfig ${name}`;
  if (reason === 'no_keys' || reason === 'key_lapsed') return 'andromeda keys add';
  if (reason === 'sign_in_lapsed') return 'andromeda auth login';
  if (reason === 'applying') return `andromeda wait ${way === 'ssh' ? 'key' : 'permission'}`;
  return next === 'you' ? `andromeda access request clusters.${way}` : undefined;
}

const table = printer<UseRow>(
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

const showAccess = reads({
  usage: 'show [cluster]',
  summary: 'what you can do on each cluster; where not, what is missing and who acts next',
  example: 'access show alpha',
  isUsual: true,
  async run({ api }, wanted) {
    // `findMe` prints notices, for example of access that ends.
    const [clusters] = await Promise.all([readUses(api, wanted), findMe(api)]);
    return table.many({ clusters }, clusters.flatMap(rowsOf));
  },
});

export const access: Noun = {
  name: 'access',
  summary: 'what you can do; ask for permissions, and decide what others ask for',
  verbs: [
    showAccess,
    writes<OrgOptions & { cluster?: string; for: string }>({
      usage: 'request <keys...>',
      summary:
        'ask an owner or admin for permissions, or for more time with them; --reason is what they read',
      example: "access request clusters.ssh --cluster alpha --for 7d --reason 'runs for the paper'",
      flags: [
        orgFlag,
        optional('--cluster <name>', 'on account of which cluster; permissions hold on all of them'),
        optional('--for <span>', 'for how long, such as 4h or 30d, or good').default('7d'),
      ],
      async run({ api, platform, options }, ...names) {
        const hours = hoursOf(options.for);
        const { cluster: wanted } = options;
        const cluster =
          wanted === undefined ? undefined : await findCluster({ api, platform }, wanted, options);
        const path = cluster ? { orgID: cluster.organization.id } : await orgPath(api, options);
        const body = {
          permissions: await expand(api, names),
          ...(cluster && { cluster_id: cluster.id }),
          ...(hours !== undefined && { hours }),
        };
        const json = await api.post('/organizations/{orgID}/access-requests', { path, body });
        return { ...own.one(json), message: '`andromeda access list` says what becomes of it.' };
      },
    }),
    reads({
      usage: 'list',
      summary: 'what you asked for, newest first, and what became of it',
      async run({ api }) {
        const json = await api.get('/me/access-requests');
        return own.many(json, json.requests);
      },
    }),
    writes({
      usage: 'withdraw <id>',
      summary: 'take back what you asked for',
      example: 'access withdraw access_request_01J8Z3XK5T7Q2M4N6P8R0S1V3W',
      async run({ api }, id = '') {
        const path = { requestID: id };
        return own.one(await api.post('/me/access-requests/{requestID}/withdraw', { path }));
      },
    }),
    reads<OrgOptions & { all?: true }>({
      usage: 'requests',
      summary: 'what members ask for, for those who may set permissions',
      flags: [orgFlag, optional('--all', 'what was decided lately too')],
      async run({ api, options }) {
        const path = await orgPath(api, options);
        const query = { state: options.all ? 'all' : 'open' };
        const json = await api.get('/organizations/{orgID}/access-requests', { path, query });
        return asked.many(json, json.requests);
      },
    }),
    writes<OrgOptions & { expires?: string; yes?: true }>({
      usage: 'approve <id>',
      summary: 'grant what a member asks for, for as long as they ask or until --expires',
      example: 'access approve access_request_01J8Z3XK5T7Q2M4N6P8R0S1V3W --expires 30d',
      flags: [orgFlag, expiresFlag, yesFlag],
      async run({ api, options }, id = '') {
        const path = { ...(await orgPath(api, options)), requestID: id };
        const end = endOf(options.expires);
        const body = end === undefined ? {} : { expires_at: end };
        const changes = [{ change: 'approve' as const, request_id: id, ...body }];
        await confirmPlan(
          await api.ask('/organizations/{orgID}/members/plan', { path, body: { changes } }),
          options,
        );
        const json = await api.post('/organizations/{orgID}/access-requests/{requestID}/approve', {
          path,
          body,
        });
        const message = `The clusters get the change now; \`andromeda wait permission ${json.email}\` ends when they have it.`;
        return { ...asked.one(json), message };
      },
    }),
    writes<OrgOptions>({
      usage: 'decline <id>',
      summary: 'refuse what a member asks for; they read the --reason',
      example: "access decline access_request_01J8Z3XK5T7Q2M4N6P8R0S1V3W --reason 'use beta until May'",
      flags: [orgFlag],
      async run({ api, options }, id = '') {
        const path = { ...(await orgPath(api, options)), requestID: id };
        return asked.one(
          await api.post('/organizations/{orgID}/access-requests/{requestID}/decline', { path }),
        );
      },
    }),
  ],
};
