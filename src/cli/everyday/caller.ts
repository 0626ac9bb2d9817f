/** Who is signed in, and the organizations they belong to. */

import { visibleLine } from '../../domain/visible-text.ts';
import { CliError, failure, usage } from '../exit.ts';
import type { Reader } from '../net/api.ts';
import type { Business } from '../net/operations.ts';
import { isObject } from '../net/request.ts';
import { printMessage } from '../output.ts';
import { type PickKind, pick } from '../pick.ts';
import { optional } from '../verb.ts';

export type Organization = Pick<Business['Organization'], 'id' | 'slug'>;

export interface OrgOptions {
  org?: string;
}

export const orgFlag = optional('--org <slug>', 'the organization, by slug or ID');

const kind: PickKind<Organization> = {
  one: 'organization of yours',
  many: 'organizations of yours',
  nameOf: ({ slug }) => slug,
  idOf: ({ id }) => id,
};

/** The caller. Nearly every command begins here, so an answer of another kind of server is refused here. */
export async function findMe(api: Reader): Promise<Business['Me']> {
  const me = await api.get('/me');
  const memberships: unknown = me.memberships;
  const isUnderstood =
    isObject(me.user) &&
    Array.isArray(memberships) &&
    memberships.every((one) => isObject(one) && typeof one.org_id === 'string');
  if (isUnderstood) {
    printNotices(me.notices);
    return me;
  }
  throw failure('The answer of the Business API to GET /me was not understood; is this its address?');
}

const printed = new Set<string>();

/** Prints, once each, what the service wants the caller to know: of access that lapses, for example. */
function printNotices(notices: unknown): void {
  if (!Array.isArray(notices)) return;
  for (const notice of notices) {
    if (typeof notice !== 'string' || printed.has(notice)) continue;
    printed.add(notice);
    printMessage(`Note: ${visibleLine(notice)}`);
  }
}

/** The caller's organizations, or only the one they name. An ID may be of another, which shares a cluster with them. */
export async function findOrganizations(api: Reader, { org }: OrgOptions): Promise<Organization[]> {
  const { memberships } = await findMe(api);
  if (org?.startsWith('org_') && !memberships.some(({ org_id: id }) => id === org))
    return [{ id: org, slug: org }];
  const all = await Promise.all(
    memberships.map(({ org_id: id }) => api.get('/organizations/{orgID}', { path: { orgID: id } })),
  );
  if (org !== undefined) return [pick(kind, all, org)];
  if (all.length > 0) return all;
  throw new CliError(
    'notFound',
    'You belong to no organization; one that shares a cluster with you is named with --org and its ID.',
  );
}

/** The organization they name, or the only one they have. */
export async function findOrganization(api: Reader, options: OrgOptions): Promise<Organization> {
  const all = await findOrganizations(api, options);
  const [first] = all;
  if (first !== undefined && all.length === 1) return first;
  const slugs = all.map(({ slug }) => slug).sort();
  throw usage(`You belong to several organizations: ${slugs.join(', ')}. Choose one with --org.`);
}
