/** Verbs of `andromeda members` that ask: what a change would do, who reaches what, who holds a grant. */
import { foldEmail } from '../../domain/email.ts';
import { type Answer, listed, printer } from '../answer.ts';
import { usage } from '../exit.ts';
import type { Reader } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { describeMemberPlan } from '../plan-text.ts';
import { optional, reads, repeatable } from '../verb.ts';
import { findOrganization, type Organization, type OrgOptions, orgFlag } from './caller.ts';

type Find = (api: Reader, organization: Organization, wanted: string) => Promise<Business['Membership']>;
type Change = Business['MemberChange'];
type PlanOptions = OrgOptions & { role?: 'owner' | 'admin' | 'member'; permission?: string[] };

/** What each change needs besides whom it is about. */
const changes: Record<string, (userId: string, options: PlanOptions) => Change> = {
  remove: (user_id) => ({ change: 'remove', user_id }),
  role: (user_id, { role }) => {
    if (role === undefined) throw usage('--role says which role it would be.');
    return { change: 'role', user_id, role };
  },
  permissions: (user_id, { permission: permissions = [] }) => ({
    change: 'permissions',
    user_id,
    permissions,
  }),
};

export const planVerb = (find: Find) =>
  reads<PlanOptions>({
    usage: 'plan <change> <emails...>',
    summary: 'what a change would do on the clusters: add, role, permissions or remove; changes nothing',
    example: 'members plan remove cy@physics.example',
    flags: [
      orgFlag,
      optional('--role <role>', 'for add and role: owner, admin or member'),
      repeatable('--permission <key>', 'for add and permissions, the complete set'),
    ],
    async run({ api, options }, change = '', ...emails) {
      const organization = await findOrganization(api, options);
      const make = changes[change];
      if (!make && change !== 'add')
        throw usage(`'${change}' is no change: add, role, permissions or remove.`);
      const planned: Change[] = [];
      for (const email of emails) {
        if (make) planned.push(make((await find(api, organization, email)).user_id, options));
        else {
          const { role, permission: permissions } = options;
          planned.push({ change: 'add', email, ...(role && { role }), ...(permissions && { permissions }) });
        }
      }
      const path = { orgID: organization.id };
      const json = await api.ask('/organizations/{orgID}/members/plan', { path, body: { changes: planned } });
      return { json, text: describeMemberPlan(json) };
    },
  });

interface AccessRow {
  person: Business['MemberAccess'];
  on: Business['AccessToCluster'];
  cluster: string;
}

const accessTable = printer<AccessRow>(
  {
    EMAIL: ({ person }) => person.email,
    CLUSTER: ({ cluster }) => cluster,
    OPENS: ({ on }) => listed([...new Set(on.ways.map(({ opens }) => opens))]),
    BY: ({ on }) => listed([...new Set(on.ways.map(({ name }) => name))]),
    UNTIL: ({ on }) => (on.ways.every(({ until }) => until) ? latest(on) : undefined),
    SLURM: ({ on }) => on.slurm && `${on.slurm.account},${on.slurm.state}`,
    KUBERNETES: ({ on }) => on.kubernetes?.state,
  },
  'There is no cluster in service.',
);

/** When the last way ends by itself. */
function latest({ ways }: Business['AccessToCluster']): string | undefined {
  return ways
    .flatMap(({ until }) => until ?? [])
    .sort()
    .at(-1);
}

export const accessVerb = (find: Find) =>
  reads<OrgOptions>({
    usage: 'access <emails...>',
    summary: 'what people reach on each cluster, by which way and until when, and whether it is there',
    example: 'members access bob@physics.example',
    flags: [orgFlag],
    async run({ api, options }, ...wanted): Promise<Answer> {
      const organization = await findOrganization(api, options);
      const ids = [];
      for (const one of wanted) ids.push(await idOf(api, organization, one, find));
      const path = { orgID: organization.id };
      const json = await api.get('/organizations/{orgID}/access', {
        path,
        query: { user_ids: ids.join(',') },
      });
      const names = new Map(json.clusters.map((one) => [one.cluster_id, one.cluster_name]));
      const rows = json.people.flatMap((person) =>
        person.clusters.map((on) => ({ person, on, cluster: names.get(on.cluster_id) ?? on.cluster_id })),
      );
      return accessTable.many(json, rows);
    },
  });

/** Somebody's ID is taken as it is: who is no member any more has nothing else to be found by. */
async function idOf(api: Reader, organization: Organization, wanted: string, find: Find): Promise<string> {
  return wanted.startsWith('user_') ? wanted : (await find(api, organization, foldEmail(wanted))).user_id;
}

const grantTable = printer<Business['OperatorGrant']>(
  {
    PERSON: ({ grant }) => grant.username,
    CLUSTER: (row) => row.cluster_name,
    NAMESPACE: ({ grant }) => grant.scope,
    RELATION: ({ grant }) => grant.relation,
    UNTIL: ({ grant }) => grant.expires_at,
    STATE: ({ access }) => access?.state,
    ID: ({ grant }) => grant.id,
  },
  'There are no grants on clusters of the organization.',
);

export const grantsVerb = reads<OrgOptions>({
  usage: 'grants',
  summary: 'who holds a Kubernetes grant on a cluster of your organization, members or not',
  example: 'members grants',
  flags: [orgFlag],
  async run({ api, options }) {
    const { id } = await findOrganization(api, options);
    const json = await api.get('/organizations/{orgID}/grants', { path: { orgID: id } });
    return grantTable.many(json, json.grants);
  },
});
