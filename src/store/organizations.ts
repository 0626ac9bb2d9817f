/** Organizations and the domains that join them automatically. */
import type { Selectable } from 'kysely';
import { newId } from '../domain/id.ts';
import type { Reader, Tx } from './index.ts';
import type { OrganizationTable } from './schema.ts';
import { toTime } from './time.ts';

export type Organization = Selectable<OrganizationTable>;

export async function findOrganization(db: Reader, orgId: string): Promise<Organization | undefined> {
  return db.selectFrom('organizations').selectAll().where('id', '=', orgId).executeTakeFirst();
}

/** The organization that people of an email domain join by themselves. */
export async function findAutoJoinOrganization(db: Reader, domain: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('auto_join_domains')
    .select('org_id')
    .where('domain', '=', domain.toLowerCase())
    .executeTakeFirst();
  return row?.org_id;
}

/** A new organization; returns its ID. */
export async function createOrganization(
  tx: Tx,
  organization: { slug: string; displayName: string; autoJoinDomains: readonly string[]; createdBy: string },
  now: number,
): Promise<string> {
  const id = newId('org', now);
  const at = toTime(now);
  await tx.db
    .insertInto('organizations')
    .values({
      id,
      slug: organization.slug,
      display_name: organization.displayName,
      lifecycle_state: 'active',
      created_by_user_id: organization.createdBy,
      created_at: at,
      updated_at: at,
    })
    .execute();
  for (const domain of organization.autoJoinDomains) {
    await tx.db
      .insertInto('auto_join_domains')
      .values({ domain: domain.toLowerCase(), org_id: id })
      .execute();
  }
  return id;
}
