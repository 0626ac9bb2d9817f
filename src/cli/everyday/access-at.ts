/** `andromeda members access --at`: who had access at a time. */
import { grantText } from '../../domain/access/review.ts';
import { isAuditPublicKey, isSigned } from '../../domain/audit/head.ts';
import { reviewText } from '../../domain/audit/key.ts';
import { csv } from '../../domain/csv.ts';
import { visibleName } from '../../domain/visible-text.ts';
import { type Answer, listed, printer } from '../answer.ts';
import { failure, usage } from '../exit.ts';
import { readInput } from '../files.ts';
import { type Reader, readPages } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { isObject, parseJson } from '../net/request.ts';

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

interface Signed {
  organization_id: string;
  at: string;
  signed_at: string;
  people: Business['ReviewedPerson'][];
}

/** What `-o signed` printed. Throws a sentence unless it is as this key has signed it: what another one signed may be anything. */
export async function checkSigned(file: string, key: string | undefined): Promise<Answer> {
  if (key === undefined || !isAuditPublicKey(key))
    throw usage('With --check, give --key as `andromeda admin audit key` prints it.');
  const given = parseJson(await readInput(file));
  const { review, signature } = isObject(given) ? given : {};
  const isText = typeof review === 'string' && typeof signature === 'string';
  if (!isText || !isSigned(reviewText(review), { key, signature }))
    throw failure(`${file} is not what this key has signed.`);
  const json = JSON.parse(review) as Signed;
  const message = `Organization ${json.organization_id} as it was at ${json.at}; signed at ${json.signed_at}.`;
  return { ...reviewTable.many(json, json.people), message };
}

/** The organization's people as they were at a time (RFC 3339); as CSV, or signed, where that is asked for. */
export async function accessAt(
  api: Reader,
  orgID: string,
  at: string,
  output: string | undefined,
): Promise<Answer> {
  const path = { orgID };
  if (output === 'signed') {
    const json = await api.get('/organizations/{orgID}/access-review/signed', { path, query: { at } });
    return { json, text: JSON.stringify(json) };
  }
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
