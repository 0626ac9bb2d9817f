/** `andromeda members review`: access that ends unless an owner keeps it; and `members access --at`: access at a past time. */
import { grantText } from '../../domain/access/review.ts';
import { visibleName } from '../../domain/text.ts';
import { type Business, type Reader, readPages } from '../net/api.ts';
import { type Answer, type Columns, csvText, listed, printer } from '../output.ts';
import { reads } from '../verb.ts';
import { findOrganization, type OrgOptions, orgFlag } from './caller.ts';

type Reviewed = Business['ReviewedPerson'];

const dueColumns: Columns<Reviewed> = {
  EMAIL: (row) => row.email,
  NAME: (row) => visibleName(row.name),
  PERMISSIONS: (row) => listed(row.permissions ?? []),
  'LAST SIGN-IN': (row) => row.last_sign_in_at,
  'LAST SSH LOGIN': (row) => row.last_ssh_login_at,
  'KEEP BY': (row) => row.keep_by,
};
const dueTable = printer(dueColumns, 'No access ends for want of a review.');

export const review = reads<OrgOptions & { output?: string }>({
  usage: 'review',
  summary:
    'whose access a review ends unless it is kept (`members grant … --expires never`), when, and when they were last here',
  flags: [orgFlag],
  formats: ['table', 'csv', 'json', 'yaml'],
  async run({ api, options }): Promise<Answer> {
    const people = await readReview(api, (await findOrganization(api, options)).id, { due: true });
    if (options.output !== 'csv') return dueTable.many({ people }, people);
    const heading = Object.keys(dueColumns).map((name) => name.toLowerCase());
    const rows = people.map((row) => Object.values(dueColumns).map((cell) => String(cell(row) ?? '')));
    return { json: people, text: csvText([heading, ...rows]) };
  },
});

const pastTable = printer<Reviewed>(
  {
    EMAIL: (row) => row.email,
    NAME: (row) => visibleName(row.name),
    ROLE: (row) => row.role ?? 'not a member',
    USERNAME: (row) => row.username,
    PERMISSIONS: (row) => listed(row.permissions ?? []),
    GRANTS: (row) => listed(grantsOf(row)),
  },
  'No one had access.',
);

export async function accessAt(
  api: Reader,
  orgID: string,
  at: string,
  output: string | undefined,
): Promise<Answer> {
  const people = await readReview(api, orgID, { at });
  if (output !== 'csv') return pastTable.many({ at, people }, people);
  const heading = ['address', 'name', 'role', 'user name', 'member since', 'permissions', 'grants'];
  const rows = people.map((row) => [
    ...[row.email, row.name, row.role ?? 'not a member', row.username ?? '', row.member_since ?? ''],
    ...[(row.permissions ?? []).join(' '), grantsOf(row).join('; ')],
  ]);
  return { json: people, text: csvText([heading, ...rows]) };
}

function grantsOf({ grants = [] }: Reviewed): string[] {
  return grants.map(({ cluster_name: clusterName, scope = null, relation }) =>
    grantText({ clusterName, scope, relation }),
  );
}

function readReview(api: Reader, orgID: string, which: { due: true } | { at: string }): Promise<Reviewed[]> {
  return readPages(
    (after) =>
      api.get('/organizations/{orgID}/access-review', {
        path: { orgID },
        query: { ...which, sort: 'email', limit: 1_000, after },
      }),
    (page) => ({ items: page.people, next: page.next_page_token }),
  );
}
