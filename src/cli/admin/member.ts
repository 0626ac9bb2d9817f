/** `andromeda admin member`: members of an organization, each addressed by it and an email address. */
import { foldEmail } from '../../domain/email.ts';
import type { Answer } from '../answer.ts';
import { memberPermissions, membershipTable, memberTable } from '../member-table.ts';
import type { Reader } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { endOf, expiresFlag } from '../permission-end.ts';
import { pick } from '../pick.ts';
import { type Noun, optional, reads, repeatable, required, writes } from '../verb.ts';
import { completeSet, findOrganization } from './organization.ts';

type Member = Business['OperatorMember'];

interface InOrganization {
  organization: string;
}

const roles = ['owner', 'admin', 'member'];
const organizationFlag = required('--organization <slug>', 'the organization');

async function list(api: Reader, organizationId: string, email?: string): Promise<Member[]> {
  const path = { orgID: organizationId };
  return (await api.get('/operator/organizations/{orgID}/members', { path, query: { email } })).members;
}

/** A member, as paths name one. */
async function pathOf(
  api: Reader,
  { organization }: InOrganization,
  email: string,
): Promise<{ orgID: string; userID: string }> {
  const organizationId = await findOrganization(api, organization);
  const kind = {
    one: `member of ${organization}`,
    many: `members of ${organization}`,
    nameOf: ({ membership }: Member) => membership.email,
    idOf: ({ membership }: Member) => membership.user_id,
  };
  const wanted = email.includes('@') ? foldEmail(email) : email;
  const { membership } = pick(kind, await list(api, organizationId), wanted);
  return { orgID: organizationId, userID: membership.user_id };
}

export const member: Noun = {
  name: 'member',
  summary: 'members of an organization and what they may do',
  verbs: [
    reads<InOrganization & { email?: string }>({
      usage: 'list',
      summary: 'the members of an organization',
      example: 'member list --organization physics',
      flags: [organizationFlag, optional('--email <email>', 'only whoever has this address')],
      async run({ api, options: { organization, email } }) {
        const found = await list(api, await findOrganization(api, organization), email);
        const rows = found.map(({ membership, ...granted }) => ({ ...membership, ...granted }));
        return memberTable.many({ members: found }, rows);
      },
    }),
    writes<InOrganization & { role?: string; username?: string; name?: string; permission?: string[] }>({
      usage: 'add <email>',
      summary: 'make someone a member; an account is made where there is none',
      example: 'member add bob@physics.example --organization physics --permission clusters.ssh',
      flags: [
        organizationFlag,
        optional('--role <role>', 'owner, admin or member (member)').choices(roles),
        optional('--username <username>', 'the login name (made from the address)'),
        optional('--name <name>', 'how they are called, for an account that is made now'),
        repeatable('--permission <key>', 'what they may do, such as clusters.ssh'),
      ],
      async run({ api, options: { organization, role, username, name, permission } }, email) {
        const path = { orgID: await findOrganization(api, organization) };
        const body = { email, name, role, username, permissions: permission };
        return membershipTable.one(await api.post('/operator/organizations/{orgID}/members', { path, body }));
      },
    }),
    writes<InOrganization>({
      usage: 'role <email> <role>',
      summary: 'make a member an owner, an admin or a member',
      example: 'member role bob@physics.example admin --organization physics',
      flags: [organizationFlag],
      async run({ api, options }, email = '', role) {
        const path = await pathOf(api, options, email);
        return membershipTable.one(
          await api.put('/operator/organizations/{orgID}/members/{userID}/role', { path, body: { role } }),
        );
      },
    }),
    writes<InOrganization>({
      usage: 'username <email> <username>',
      summary: "set a member's login name, until it is first used on a cluster",
      example: 'member username bob@physics.example bob --organization physics',
      flags: [organizationFlag],
      async run({ api, options }, email = '', username) {
        const path = await pathOf(api, options, email);
        return membershipTable.one(
          await api.put('/operator/organizations/{orgID}/members/{userID}/username', {
            path,
            body: { username },
          }),
        );
      },
    }),
    writes<InOrganization & { none?: true; expires?: string }>({
      usage: 'permissions <email> [keys...]',
      summary: 'set what a member may do: the complete set',
      example: 'member permissions bob@physics.example clusters.ssh --organization physics',
      flags: [organizationFlag, optional('--none', 'nothing'), expiresFlag],
      async run({ api, options }, email = '', ...keys) {
        const permissions = completeSet('permissions', keys, options.none);
        const end = endOf(options.expires);
        const ends = end !== undefined && { expires_at: Object.fromEntries(keys.map((key) => [key, end])) };
        const body = { permissions, ...ends };
        const path = await pathOf(api, options, email);
        return memberPermissions.one(
          await api.put('/operator/organizations/{orgID}/members/{userID}/permissions', { path, body }),
        );
      },
    }),
    writes<InOrganization>({
      usage: 'remove <email>',
      summary: 'end a membership: accounts are locked, homes kept, sessions closed',
      example: "member remove bob@physics.example --organization physics --reason 'has left'",
      flags: [organizationFlag],
      async run({ api, options }, email = ''): Promise<Answer> {
        const path = await pathOf(api, options, email);
        const json = await api.post('/operator/organizations/{orgID}/members/{userID}/remove', { path });
        return { json, text: '', message: `${email} is no longer a member of ${options.organization}.` };
      },
    }),
  ],
};
