/** `andromeda members`: who is in an organization, and what they may do. */

import { foldEmail } from '../../domain/email.ts';
import type { Answer } from '../answer.ts';
import { CliError, usage } from '../exit.ts';
import { kubernetesAccess, memberPermissions, membershipTable, memberTable } from '../member-table.ts';
import type { Api, Reader } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { endOf, expiresFlag } from '../permission-end.ts';
import { type PickKind, pick } from '../pick.ts';
import { type Noun, optional, reads, writes } from '../verb.ts';
import { findOrganization, type Organization, type OrgOptions, orgFlag } from './caller.ts';
import { accessVerb, grantsVerb, planVerb } from './member-access.ts';

type Member = Business['Membership'];

async function listMembers(api: Reader, { id }: Organization): Promise<Member[]> {
  return (await api.get('/organizations/{orgID}/members', { path: { orgID: id } })).members;
}

/** The member with this address or ID. */
export async function findMember(api: Reader, organization: Organization, wanted: string): Promise<Member> {
  const kind: PickKind<Member> = {
    one: `member of ${organization.slug}`,
    many: `members of ${organization.slug}`,
    nameOf: ({ email }) => email,
    idOf: ({ user_id: id }) => id,
  };
  return pick(kind, await listMembers(api, organization), wanted.includes('@') ? foldEmail(wanted) : wanted);
}

/** A member of the organization that the options name, and how paths name them. */
async function findPath(api: Reader, options: OrgOptions, email: string) {
  const organization = await findOrganization(api, options);
  const { user_id: userID } = await findMember(api, organization, email);
  return { organization, path: { orgID: organization.id, userID } };
}

/** The keys a member was granted; what is not one's own takes members.manage. */
export function readPermissions(
  api: Reader,
  path: { orgID: string; userID: string },
): Promise<Business['MemberPermissions']> {
  return api.get('/organizations/{orgID}/members/{userID}/permissions', { path });
}

/** A profile's name stands for its keys. */
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

/** Sets what `edit` makes of a member's keys; nothing is written where it makes the same. */
async function change(
  api: Api,
  options: OrgOptions,
  email: string,
  names: readonly string[],
  edit: (held: ReadonlySet<string>, keys: readonly string[]) => string[],
  /** Of the keys named; null: none, undefined: as they are. */
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
  const message = `The clusters are told now; \`andromeda wait permission ${email}\` ends when they have it.`;
  return { ...memberPermissions.one(json), message };
}

export const members: Noun = {
  name: 'members',
  summary: 'the members of your organization, and what they may do',
  verbs: [
    reads<OrgOptions & { permissions?: true }>({
      usage: 'list',
      summary: 'the members of your organization, oldest first',
      example: 'members list --permissions',
      flags: [orgFlag, optional('--permissions', 'what each may do too; takes members.manage')],
      async run({ api, options }) {
        const organization = await findOrganization(api, options);
        const members = await listMembers(api, organization);
        if (!options.permissions) return membershipTable.many({ members }, members);
        const rows = [];
        for (const member of members) {
          const { permissions, expires_at: ends } = await readPermissions(api, {
            orgID: organization.id,
            userID: member.user_id,
          });
          rows.push({ ...member, permissions, ...(ends && { expires_at: ends }) });
        }
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
    accessVerb(findMember),
    grantsVerb,
    planVerb(findMember),
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
    writes<OrgOptions & { role?: string; username?: string; name?: string }>({
      usage: 'add <email>',
      summary: 'make someone a member, as an owner or an admin may; a new one may do nothing yet',
      example: 'members add cy@physics.example --username cy',
      flags: [
        orgFlag,
        optional('--role <role>', 'owner, admin or member (member)'),
        optional('--username <username>', 'the login name on the clusters (made from the address)'),
        optional('--name <name>', 'for an account that is made now'),
      ],
      async run({ api, options: { role, username, name, ...options } }, email = '') {
        const { id } = await findOrganization(api, options);
        const body = { email, role, username, name };
        return membershipTable.one(
          await api.post('/organizations/{orgID}/members', { path: { orgID: id }, body }),
        );
      },
    }),
    writes<OrgOptions>({
      usage: 'role <email> <role>',
      summary: 'make a member an owner, an admin or an ordinary member; an owner always remains',
      example: 'members role cy@physics.example admin',
      flags: [orgFlag],
      async run({ api, options }, email = '', role) {
        const { path } = await findPath(api, options, email);
        const answer = await api.put('/organizations/{orgID}/members/{userID}/role', {
          path,
          body: { role },
        });
        return membershipTable.one(answer);
      },
    }),
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
