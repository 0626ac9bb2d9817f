/** `andromeda members review` and `confirm`: whose access owners are asked to confirm, and doing that. */
import { csv } from '../../domain/csv.ts';
import { visibleName } from '../../domain/visible-text.ts';
import { type Answer, type Columns, listed, printer } from '../answer.ts';
import { usage } from '../exit.ts';
import { type Reader, readPages } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { optional, reads, writes } from '../verb.ts';
import { findMember, findOrganization, type OrgOptions, orgFlag } from './caller.ts';

type Reviewed = Business['ReviewedPerson'];

const columns: Columns<Reviewed> = {
  EMAIL: (row) => row.email,
  NAME: (row) => visibleName(row.name),
  PERMISSIONS: (row) => listed(row.permissions ?? []),
  'LAST SIGN-IN': (row) => row.last_sign_in_at,
  'LAST SSH LOGIN': (row) => row.last_ssh_login_at,
  'CONFIRM BY': (row) => row.confirm_by,
};
const table = printer(columns, 'There is nothing to confirm.');

function csvOf(people: readonly Reviewed[]): string {
  const rows = people.map((row) => Object.values(columns).map((cell) => String(cell(row) ?? '')));
  return csv([Object.keys(columns).map((name) => name.toLowerCase()), ...rows]);
}

async function listDue(api: Reader, orgID: string): Promise<Reviewed[]> {
  return readPages(
    (after) =>
      api.get('/organizations/{orgID}/access-review', {
        path: { orgID },
        query: { due: true, sort: 'email', limit: 1_000, after },
      }),
    (page) => ({ items: page.people, next: page.next_page_token }),
  );
}

export const review = reads<OrgOptions & { output?: string }>({
  usage: 'review',
  summary: 'whose access owners are asked to confirm, until when, and when they were last here',
  flags: [orgFlag],
  formats: ['table', 'csv', 'json', 'yaml'],
  async run({ api, options }): Promise<Answer> {
    const people = await listDue(api, (await findOrganization(api, options)).id);
    if (options.output === 'csv')
      return { json: people, text: csvOf(people).replaceAll('\r\n', '\n').trimEnd() };
    return table.many({ people }, people);
  },
});

/** As many as one request takes. */
const most = 1_000;

export const confirm = writes<OrgOptions & { all?: true }>({
  usage: 'confirm [emails...]',
  summary: 'confirm what members hold, so that it gets no end; takes back an end that a missed review gave',
  example: "members confirm bob@physics.example --reason 'still on the project'",
  flags: [orgFlag, optional('--all', 'everyone whom `members review` shows')],
  async run({ api, options }, ...emails) {
    if (emails.length > 0 === (options.all ?? false)) throw usage('Give addresses, or --all.');
    const organization = await findOrganization(api, options);
    const found: { user_id: string }[] = options.all ? await listDue(api, organization.id) : [];
    for (const email of emails) {
      const member = await findMember(api, organization, email);
      if (member.role !== 'member') throw usage(`${email} is ${member.role}; roles are not confirmed.`);
      found.push(member);
    }
    const ids = found.map(({ user_id: id }) => id);
    const confirmed: string[] = [];
    for (let from = 0; from < ids.length; from += most) {
      const path = { orgID: organization.id };
      const body = { user_ids: ids.slice(from, from + most) };
      const json = await api.post('/organizations/{orgID}/access-review/confirm', { path, body });
      confirmed.push(...json.user_ids);
    }
    const message =
      confirmed.length === 1 ? '1 member is confirmed.' : `${confirmed.length} members are confirmed.`;
    return { json: { user_ids: confirmed }, text: '', message };
  },
});
