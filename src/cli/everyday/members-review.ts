/** `andromeda members review`: whose access ends unless an owner keeps it. */
import { csv, visibleName } from '../../domain/text.ts';
import { type Answer, type Columns, listed, printer } from '../answer.ts';
import { type Reader, readPages } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { reads } from '../verb.ts';
import { findOrganization, type OrgOptions, orgFlag } from './caller.ts';

type Reviewed = Business['ReviewedPerson'];

const columns: Columns<Reviewed> = {
  EMAIL: (row) => row.email,
  NAME: (row) => visibleName(row.name),
  PERMISSIONS: (row) => listed(row.permissions ?? []),
  'LAST SIGN-IN': (row) => row.last_sign_in_at,
  'LAST SSH LOGIN': (row) => row.last_ssh_login_at,
  'KEEP BY': (row) => row.keep_by,
};
const table = printer(columns, 'No access ends for want of a review.');

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
  summary:
    'whose access a review ends unless it is kept (`members grant … --expires never`), when, and when they were last here',
  flags: [orgFlag],
  formats: ['table', 'csv', 'json', 'yaml'],
  async run({ api, options }): Promise<Answer> {
    const people = await listDue(api, (await findOrganization(api, options)).id);
    if (options.output === 'csv')
      return { json: people, text: csvOf(people).replaceAll('\r\n', '\n').trimEnd() };
    return table.many({ people }, people);
  },
});
