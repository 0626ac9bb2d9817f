/** `andromeda members`: the members of an organization and their permissions. Staff may name any organization with `--org`. */
import { parseEnd, parseTime } from '../arguments.ts';
import { CliError, usage } from '../exit.ts';
import type { Api, Business, Reader } from '../net/api.ts';
import { type Answer, type Columns, listed, printer } from '../output.ts';
import { describeMemberPlan } from '../plan-text.ts';
import { type Noun, optional, reads, repeatable, type Verb, writes } from '../verb.ts';
import { accessAt, review } from './access-review.ts';
import {
  findMember,
  findOrganization,
  listMembers,
  type Member,
  type Organization,
  type OrgOptions,
  orgFlag,
  orgPath,
} from './caller.ts';

type Change = Business['MemberChange'];
type PlanOptions = OrgOptions & { role?: 'owner' | 'admin' | 'member'; permission?: string[] };

const plan = reads<PlanOptions>({
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
    const changes: Change[] = [];
    for (const email of emails) changes.push(await plannedChange(api, organization, change, email, options));
    const path = { orgID: organization.id };
    const json = await api.ask('/organizations/{orgID}/members/plan', { path, body: { changes } });
    return { json, text: describeMemberPlan(json) };
  },
});

async function plannedChange(
  api: Reader,
  organization: Organization,
  change: string,
  email: string,
  { role, permission: permissions }: PlanOptions,
): Promise<Change> {
  if (change === 'add') return { change, email, ...(role && { role }), ...(permissions && { permissions }) };
  if (change !== 'role' && change !== 'permissions' && change !== 'remove')
    throw usage(`'${change}' is no change: add, role, permissions or remove.`);
  const { user_id } = await findMember(api, organization, email);
  if (change === 'remove') return { change, user_id };
  if (change === 'permissions') return { change, user_id, permissions: permissions ?? [] };
  if (role === undefined) throw usage('--role says which role it would be.');
  return { change, user_id, role };
}

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

function latest({ ways }: Business['AccessToCluster']): string | undefined {
  return ways
    .flatMap(({ until }) => until ?? [])
    .sort()
    .at(-1);
}

const access = reads<OrgOptions & { at?: string; output?: string }>({
  usage: 'access [emails...]',
  summary: 'what people reach on each cluster, by which way and until when; with --at, who had access then',
  example: 'members access bob@physics.example',
  flags: [orgFlag, optional('--at <time>', 'everyone, as it was at a date (its beginning, in UTC) or time')],
  formats: ['table', 'csv', 'json', 'yaml'],
  async run({ api, options }, ...wanted): Promise<Answer> {
    const at = parseTime('--at', options.at);
    if (at !== undefined && wanted.length > 0) throw usage('--at shows everyone; leave the addresses out.');
    if (at !== undefined) return accessAt(api, (await findOrganization(api, options)).id, at, options.output);
    if (wanted.length === 0) throw usage('Give addresses, or a time with --at.');
    const organization = await findOrganization(api, options);
    const ids: string[] = [];
    // A former member cannot be found by address, but still has an ID.
    for (const one of wanted)
      ids.push(one.startsWith('user_') ? one : (await findMember(api, organization, one)).user_id);
    const given = { path: { orgID: organization.id }, query: { user_ids: ids.join(',') } };
    const json = await api.get('/organizations/{orgID}/access', given);
    const names = new Map(json.clusters.map((one) => [one.cluster_id, one.cluster_name]));
    const rows = json.people.flatMap((person) =>
      person.clusters.map((on) => ({ person, on, cluster: names.get(on.cluster_id) ?? on.cluster_id })),
    );
    return accessTable.many(json, rows);
  },
});

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

const grants = reads<OrgOptions>({
  usage: 'grants',
  summary: 'who holds a Kubernetes grant on a cluster of your organization, members or not',
  flags: [orgFlag],
  async run({ api, options }) {
    const path = await orgPath(api, options);
    const json = await api.get('/organizations/{orgID}/grants', { path });
    return grantTable.many(json, json.grants);
  },
});

type Granted = Pick<Business['MemberPermissions'], 'permissions' | 'expires_at'>;

function grantedOf({ permissions, expires_at: ends = {} }: Granted): string {
  return listed(permissions.map((key) => (ends[key] === undefined ? key : `${key} until ${ends[key]}`)));
}

const who: Columns<Member> = {
  EMAIL: (row) => row.email,
  ROLE: (row) => row.role,
  USERNAME: (row) => row.organization_username.username,
};
const id: Columns<Member> = { ID: (row) => row.user_id };
const membershipTable = printer<Member>({ ...who, ...id }, 'There are no members.');
const memberTable = printer<Member & Granted>(
  { ...who, PERMISSIONS: grantedOf, ...id },
  'There are no such members.',
);

const memberPermissions = printer<Business['MemberPermissions']>(
  { ROLE: (row) => row.role, PERMISSIONS: grantedOf, ID: (row) => row.user_id },
  '',
);

const kubernetesAccess = printer<Business['MemberKubernetesAccess']>(
  { CLUSTER: (row) => row.cluster_name, KUBERNETES: (row) => row.state, MESSAGE: (row) => row.message },
  'There are no Kubernetes clusters.',
);

export const expiresFlag = optional(
  '--expires <time>',
  'when they end by themselves: a time, a span from now such as 7d, or never',
);

export function endOf(text: string | undefined): string | null | undefined {
  return text === 'never' ? null : parseEnd('--expires', text);
}

async function findPath(api: Reader, options: OrgOptions, email: string) {
  const organization = await findOrganization(api, options);
  const { user_id: userID } = await findMember(api, organization, email);
  return { organization, path: { orgID: organization.id, userID } };
}

export function readPermissions(
  api: Reader,
  path: { orgID: string; userID: string },
): Promise<Business['MemberPermissions']> {
  return api.get('/organizations/{orgID}/members/{userID}/permissions', { path });
}

export async function expand(api: Reader, names: readonly string[]): Promise<string[]> {
  if (names.every((name) => name.includes('.'))) return [...names];
  const { profiles } = await api.get('/permission-profiles');
  return names.flatMap((name) => {
    if (name.includes('.')) return [name];
    const profile = profiles.find((one) => one.name.toLowerCase() === name.toLowerCase());
    if (profile) return profile.permissions;
    const known = profiles.map((one) => one.name).join(', ');
    throw usage(`'${name}' is neither a permission, such as clusters.ssh, nor a profile: ${known}.`);
  });
}

/** Sets a member's permissions to the result of `edit`; without a change, nothing is written. */
async function change(
  api: Api,
  options: OrgOptions,
  email: string,
  names: readonly string[],
  edit: (held: ReadonlySet<string>, keys: readonly string[]) => string[],
  /** End of the named keys; null: no end, undefined: unchanged. */
  end?: string | null,
): Promise<Answer> {
  const { path } = await findPath(api, options, email);
  const held = await readPermissions(api, path);
  if (held.role !== 'member')
    throw new CliError('conflict', `${email} is ${held.role}, which includes every permission.`);
  const before = new Set(held.permissions);
  const keys = await expand(api, names);
  const permissions = edit(before, keys).sort();
  const ends = permissions.flatMap((key) => {
    const sent = keys.includes(key) && end !== undefined ? end : held.expires_at?.[key];
    return sent === undefined ? [] : [[key, sent] as const];
  });
  const isSameEnd = ends.every(([key, sent]) => (held.expires_at?.[key] ?? null) === sent);
  if (isSameEnd && permissions.length === before.size && permissions.every((key) => before.has(key)))
    return { ...memberPermissions.one(held), message: 'Nothing to change.' };
  const json = await api.put('/organizations/{orgID}/members/{userID}/permissions', {
    path,
    body: { permissions, ...(ends.length > 0 && { expires_at: Object.fromEntries(ends) }) },
  });
  const message = `The clusters get the change now; \`andromeda wait permission ${email}\` ends when they have it.`;
  return { ...memberPermissions.one(json), message };
}

function changesMember(
  usage: string,
  summary: string,
  example: string,
  change: (api: Api, path: { orgID: string; userID: string }, to?: string) => Promise<Member>,
): Verb {
  return writes<OrgOptions>({
    usage,
    summary,
    example,
    flags: [orgFlag],
    async run({ api, options }, email = '', to) {
      return membershipTable.one(await change(api, (await findPath(api, options, email)).path, to));
    },
  });
}

export const members: Noun = {
  name: 'members',
  summary: 'the members of your organization, and what they may do',
  verbs: [
    reads<OrgOptions & { permissions?: true }>({
      usage: 'list',
      summary: 'the members of your organization, oldest first',
      example: 'members list --permissions',
      flags: [
        orgFlag,
        optional('--permissions', 'what each may do too; takes members.manage, or staff.read'),
      ],
      async run({ api, options }) {
        const organization = await findOrganization(api, options);
        const members = await listMembers(api, organization);
        if (!options.permissions) return membershipTable.many({ members }, members);
        const path = { orgID: organization.id };
        const held = await api.get('/organizations/{orgID}/permissions', { path });
        const byId = new Map(held.members.map((one) => [one.user_id, one]));
        const rows = members.flatMap((member) => {
          const known = byId.get(member.user_id);
          // A person who joined or left between the two reads must not appear as a member without permissions.
          if (!known) return [];
          const { permissions, expires_at: ends } = known;
          return [{ ...member, permissions, ...(ends && { expires_at: ends }) }];
        });
        return memberTable.many({ members: rows }, rows);
      },
    }),
    reads<OrgOptions>({
      usage: 'show <email>',
      summary: 'what a member may do, and whether it is in force on the Kubernetes clusters',
      example: 'members show bob@physics.example',
      flags: [orgFlag],
      async run({ api, options }, email = '') {
        const { path } = await findPath(api, options, email);
        const [held, access] = await Promise.all([
          readPermissions(api, path),
          api.get('/organizations/{orgID}/members/{userID}/kubernetes-access', { path }),
        ]);
        const tables = [memberPermissions.one(held), kubernetesAccess.many(access, access.clusters)];
        const text = tables.map((one) => one.text).filter((one) => one !== '');
        return { json: { ...held, kubernetes: access.clusters }, text: text.join('\n\n') };
      },
    }),
    access,
    review,
    grants,
    plan,
    writes<OrgOptions & { expires?: string }>({
      usage: 'grant <email> <keys...>',
      summary: 'let a member do more: permissions, or a profile such as Engineer',
      example: 'members grant bob@physics.example clusters.read clusters.ssh --expires 30d',
      flags: [orgFlag, expiresFlag],
      run({ api, options }, email = '', ...names) {
        const end = endOf(options.expires);
        return change(api, options, email, names, (held, keys) => [...new Set([...held, ...keys])], end);
      },
    }),
    writes<OrgOptions>({
      usage: 'revoke <email> <keys...>',
      summary: 'take permissions from a member; without clusters.ssh, open sessions are closed',
      example: "members revoke bob@physics.example clusters.ssh --reason 'left the project'",
      flags: [orgFlag],
      run: ({ api, options }, email = '', ...names) =>
        change(api, options, email, names, (held, keys) => [...held].filter((key) => !keys.includes(key))),
    }),
    writes<OrgOptions & { role?: string; username?: string; name?: string; permission?: string[] }>({
      usage: 'add <email>',
      summary: 'make someone a member, as an owner, an admin or an operator may',
      example: 'members add cy@physics.example --username cy',
      flags: [
        orgFlag,
        optional('--role <role>', 'owner, admin or member (member)'),
        optional('--username <username>', 'the login name on the clusters (made from the address)'),
        optional('--name <name>', 'for an account that is made now'),
        repeatable('--permission <key>', 'what they may do, such as clusters.ssh'),
      ],
      async run({ api, options: { role, username, name, permission, ...options } }, email = '') {
        const path = await orgPath(api, options);
        const body = { email, role, username, name, permissions: permission };
        return membershipTable.one(await api.post('/organizations/{orgID}/members', { path, body }));
      },
    }),
    changesMember(
      'role <email> <role>',
      'make a member an owner, an admin or an ordinary member; an owner always remains',
      'members role cy@physics.example admin',
      (api, path, role) => api.put('/organizations/{orgID}/members/{userID}/role', { path, body: { role } }),
    ),
    changesMember(
      'username <email> <username>',
      "set a member's login name, until it is first used on a cluster",
      'members username cy@physics.example cyrus',
      (api, path, username) =>
        api.put('/organizations/{orgID}/members/{userID}/username', { path, body: { username } }),
    ),
    writes<OrgOptions>({
      usage: 'remove <email>',
      summary: 'end a membership: accounts are locked, homes kept, open sessions closed',
      example: "members remove cy@physics.example --reason 'left the lab'",
      flags: [orgFlag],
      async run({ api, options }, email = '') {
        const { organization, path } = await findPath(api, options, email);
        const json = await api.post('/organizations/{orgID}/members/{userID}/remove', { path });
        return { json, text: '', message: `${email} is no longer a member of ${organization.slug}.` };
      },
    }),
  ],
};
