/** Organizations and the domains that join them automatically. */
import { DomainError } from '../../domain/error.ts';
import { newId } from '../../domain/id.ts';
import type { Organization } from '../../domain/organizations/membership.ts';
import { foldEmail } from '../../domain/people/person.ts';
import type { Reader, Tx } from '../engine/index.ts';
import { deleteRows, findRow, inCamelCase, insertRow, listRows, updateRows } from '../engine/rows.ts';
import { toTime } from '../engine/time.ts';
import { deleteOpenRequests } from './access-requests.ts';

export async function findOrganization(
  db: Reader,
  organizationId: string,
): Promise<Organization | undefined> {
  const row = await findRow(db, 'organizations', { id: organizationId });
  return row && inCamelCase(row);
}

export async function findOrganizationBySlug(db: Reader, slug: string): Promise<Organization | undefined> {
  const row = await findRow(db, 'organizations', { slug });
  return row && inCamelCase(row);
}

/** The slugs of all organizations, retired ones included. */
export async function listSlugs(db: Reader): Promise<string[]> {
  const rows = await db.selectFrom('organizations').select('slug').orderBy('slug').execute();
  return rows.map(({ slug }) => slug);
}

/** An organization with the domains that join it and its numbers of members and clusters. */
export interface OrganizationSummary {
  organization: Organization;
  domains: string[];
  members: number;
  clusters: number;
}

/** Every organization, oldest first; only one, if its ID is given. */
export async function listOrganizations(db: Reader, organizationId?: string): Promise<OrganizationSummary[]> {
  let query = db.selectFrom('organizations').selectAll('organizations');
  if (organizationId !== undefined) query = query.where('organizations.id', '=', organizationId);
  const rows = await query
    .select((eb) => [
      eb
        .selectFrom('memberships')
        .whereRef('memberships.org_id', '=', 'organizations.id')
        .where('memberships.lifecycle_state', '=', 'active')
        .select((count) => count.fn.countAll<number>().as('n'))
        .as('members'),
      eb
        .selectFrom('clusters')
        .whereRef('clusters.organization_id', '=', 'organizations.id')
        .where('clusters.state', '!=', 'released')
        .select((count) => count.fn.countAll<number>().as('n'))
        .as('clusters'),
    ])
    .orderBy('organizations.created_at')
    .orderBy('organizations.id')
    .execute();
  const domains = await listRows(db, 'auto_join_domains', {}, 'domain');
  return rows.map(({ members, clusters, ...row }) => ({
    organization: inCamelCase(row),
    domains: domains.filter(({ org_id }) => org_id === row.id).map(({ domain }) => domain),
    members: members ?? 0,
    clusters: clusters ?? 0,
  }));
}

/** The organization that people of an email domain join by themselves. */
export async function findAutoJoinOrganization(db: Reader, domain: string): Promise<string | undefined> {
  const row = await findRow(db, 'auto_join_domains', { domain: foldEmail(domain) });
  return row?.org_id;
}

/** Creates an organization; returns its ID. Throws `invalid_state` when the slug or a domain is another's. */
export async function createOrganization(
  tx: Tx,
  organization: { slug: string; displayName: string; autoJoinDomains: readonly string[]; createdBy: string },
): Promise<string> {
  const { slug } = organization;
  const other = await findOrganizationBySlug(tx.db, slug);
  if (other) {
    const state = other.lifecycleState === 'retired' ? ', which is retired' : '';
    throw new DomainError('invalid_state', `There is an organization ${slug} already${state}.`);
  }
  const id = newId('org', tx.now);
  const at = toTime(tx.now);
  await insertRow(tx.db, 'organizations', {
    id,
    slug,
    display_name: organization.displayName,
    lifecycle_state: 'active',
    created_by_user_id: organization.createdBy,
    created_at: at,
    updated_at: at,
  });
  await updateAutoJoinDomains(tx, { organizationId: id, domains: organization.autoJoinDomains });
  return id;
}

/** Sets how many hours members' access lasts without a sign-in; null: as long as the installation says. */
export async function updateSignInHours(
  tx: Tx,
  { organizationId, hours }: { organizationId: string; hours: number | null },
): Promise<void> {
  await updateRows(tx.db, 'organizations', { id: organizationId }, { max_hours_without_sign_in: hours });
  tx.changed({ kind: 'organization', organizationId });
}

/** Sets the display name; returns whether that changed anything. */
export async function updateOrganizationName(
  tx: Tx,
  organization: { organizationId: string; displayName: string },
): Promise<boolean> {
  const { organizationId, displayName } = organization;
  const updated = await tx.db
    .updateTable('organizations')
    .set({ display_name: displayName, updated_at: toTime(tx.now) })
    .where('id', '=', organizationId)
    .where('display_name', '!=', displayName)
    .executeTakeFirst();
  return updated.numUpdatedRows > 0n;
}

/**
 * Replaces the domains that join an organization (in any case); returns whether that changed anything. People who
 * joined before stay. Throws `invalid_state` when one joins another organization.
 */
export async function updateAutoJoinDomains(
  tx: Tx,
  organization: { organizationId: string; domains: readonly string[] },
): Promise<boolean> {
  const { organizationId } = organization;
  const wanted = new Set(organization.domains.map((domain) => foldEmail(domain)));
  const rows = await listRows(tx.db, 'auto_join_domains', { org_id: organizationId });
  const had = new Set(rows.map((row) => row.domain));
  const added = wanted.difference(had);
  const removed = had.difference(wanted);
  if (added.size + removed.size === 0) return false;
  for (const domain of removed) {
    await deleteRows(tx.db, 'auto_join_domains', { domain });
  }
  for (const domain of added) {
    if ((await findAutoJoinOrganization(tx.db, domain)) !== undefined) {
      throw new DomainError('invalid_state', `The domain ${domain} joins another organization already.`);
    }
    await insertRow(tx.db, 'auto_join_domains', { domain, org_id: organizationId });
  }
  await updateRows(tx.db, 'organizations', { id: organizationId }, { updated_at: toTime(tx.now) });
  return true;
}

/**
 * Ends an organization: no domain joins it, its open requests are deleted, and nothing can be added to it; returns
 * whether that changed anything. Throws `invalid_state` while a cluster of it is not released.
 */
export async function retireOrganization(tx: Tx, organizationId: string): Promise<boolean> {
  const cluster = await tx.db
    .selectFrom('clusters')
    .select('name')
    .where('organization_id', '=', organizationId)
    .where('state', '!=', 'released')
    .executeTakeFirst();
  if (cluster) {
    throw new DomainError(
      'invalid_state',
      `The cluster ${cluster.name} is not released yet. Release it first.`,
    );
  }
  await updateAutoJoinDomains(tx, { organizationId, domains: [] });
  await deleteOpenRequests(tx, organizationId);
  const updated = await tx.db
    .updateTable('organizations')
    .set({ lifecycle_state: 'retired', updated_at: toTime(tx.now) })
    .where('id', '=', organizationId)
    .where('lifecycle_state', '=', 'active')
    .executeTakeFirst();
  return updated.numUpdatedRows > 0n;
}

/** Throws `invalid_state` when an organization is retired. */
export async function requireActiveOrganization(db: Reader, organizationId: string): Promise<void> {
  const organization = await findOrganization(db, organizationId);
  if (organization?.lifecycleState !== 'retired') return;
  throw new DomainError('invalid_state', `The organization ${organization.slug} is retired.`);
}
