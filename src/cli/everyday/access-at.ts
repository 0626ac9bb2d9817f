/** `andromeda members access --at`: who had access at a time. */
import { grantText } from '../../domain/access/review.ts';
import { csv, visibleName } from '../../domain/text.ts';
import { type Answer, listed, printer } from '../answer.ts';
import { type Reader, readPages } from '../net/api.ts';
import type { Business } from '../net/operations.ts';

const reviewTable = printer<Business['ReviewedPerson']>(
  {
    EMAIL: (row) => row.email,
    NAME: (row) => visibleName(row.name),
    ROLE: (row) => row.role ?? 'not a member',
    USERNAME: (row) => row.username,
    PERMISSIONS: (row) => listed(row.permissions ?? []),
    GRANTS: (row) => listed((row.grants ?? []).map(grantLine)),
  },
  'No one had access.',
);

function grantLine({
  cluster_name,
  scope,
  relation,
}: NonNullable<Business['ReviewedPerson']['grants']>[number]) {
  return grantText({ clusterName: cluster_name, scope: scope ?? null, relation });
}

function csvOf(people: readonly Business['ReviewedPerson'][]): string {
  const rows = people.map(({ email, name, role, username, member_since, permissions, grants }) => [
    ...[email, name, role ?? 'not a member', username ?? '', member_since ?? ''],
    ...[(permissions ?? []).join(' '), (grants ?? []).map(grantLine).join('; ')],
  ]);
  return csv([['address', 'name', 'role', 'user name', 'member since', 'permissions', 'grants'], ...rows]);
}

/** The organization's people as they were at a time (RFC 3339); as CSV where that is asked for. */
export async function accessAt(
  api: Reader,
  orgID: string,
  at: string,
  output: string | undefined,
): Promise<Answer> {
  const path = { orgID };
  const people = await readPages(
    (after) =>
      api.get('/organizations/{orgID}/access-review', {
        path,
        query: { at, sort: 'email', limit: 1_000, after },
      }),
    (page) => ({ items: page.people, next: page.next_page_token }),
  );
  if (output === 'csv') return { json: people, text: csvOf(people).replaceAll('\r\n', '\n').trimEnd() };
  return reviewTable.many({ at, people }, people);
}
