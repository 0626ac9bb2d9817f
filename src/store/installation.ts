/** A whole installation made at once, from a lab file, in an empty database. */
import { newUuid } from '../domain/id.ts';
import type { Lab, LabCluster, LabOrganization } from '../domain/lab.ts';
import { createCluster } from './clusters.ts';
import { appendAuditEntry } from './commands.ts';
import { createGrant } from './grants.ts';
import type { Reader, Store, Tx } from './index.ts';
import { createMembership } from './members.ts';
import { createOrganization } from './organizations.ts';
import { toTime } from './time.ts';
import { createStaffKey, createUser, findUserByEmail, systemUserId } from './users.ts';

/** Whether there is nothing in the database but what every new one has. */
export async function isEmpty(db: Reader): Promise<boolean> {
  const person = await db.selectFrom('users').select('id').where('kind', '=', 'person').executeTakeFirst();
  const organization = await db.selectFrom('organizations').select('id').executeTakeFirst();
  return person === undefined && organization === undefined;
}

/** Makes all that a lab names, in one transaction, as the installation itself; nothing if anything is there. */
export async function createInstallation(
  store: Store,
  lab: Lab,
  source: string,
  now: number,
): Promise<boolean> {
  return store.write(async (tx) => {
    if (!(await isEmpty(tx.db))) return false;
    for (const user of lab.users ?? []) {
      const userId = await createUser(tx, { email: user.email, displayName: user.name ?? user.email }, now);
      for (const permission of user.staff ?? []) await createStaffKey(tx, userId, permission);
    }
    const organizations = new Map<string, string>();
    for (const organization of lab.organizations ?? []) {
      organizations.set(organization.slug, await addOrganization(tx, organization, now));
    }
    const clusters = new Map<string, string>();
    for (const cluster of lab.clusters ?? []) {
      clusters.set(
        cluster.name,
        await addCluster(tx, cluster, organizations.get(cluster.organization) ?? '', now),
      );
    }
    for (const grant of lab.grants ?? []) {
      await createGrant(
        tx,
        {
          resource_id: clusters.get(grant.cluster) ?? '',
          user_id: await personId(tx, grant.user, now),
          relation: grant.relation,
          scope: grant.namespace ?? null,
          role_id: grant.roleId ?? null,
          expires_at: grant.expiresAt === undefined ? null : toTime(Date.parse(grant.expiresAt)),
          granted_by: systemUserId,
        },
        now,
      );
    }
    await appendAuditEntry(tx, {
      at: toTime(now),
      actor_user_id: systemUserId,
      command_id: null,
      operation: 'createInstallation',
      target: source,
      reason: 'First start on an empty database',
      source_address: '',
      result: 'done',
    });
    return true;
  });
}

async function addOrganization(tx: Tx, organization: LabOrganization, now: number): Promise<string> {
  const orgId = await createOrganization(
    tx,
    {
      slug: organization.slug,
      displayName: organization.name,
      autoJoinDomains: organization.autoJoinDomains ?? [],
      createdBy: systemUserId,
    },
    now,
  );
  // Names that the file asks for come first, so that none is given away to someone it asks nothing for.
  const members = [...(organization.members ?? [])].sort(
    (a, b) => Number(a.username === undefined) - Number(b.username === undefined),
  );
  for (const member of members) {
    const userId = await personId(tx, member.email, now);
    const { email, role, username, permissions } = member;
    await createMembership(tx, { orgId, userId, email, role, username, permissions }, now);
  }
  return orgId;
}

async function addCluster(tx: Tx, cluster: LabCluster, organizationId: string, now: number): Promise<string> {
  const id = cluster.id?.toLowerCase() ?? newUuid();
  const { simulated } = cluster;
  await createCluster(
    tx,
    {
      id,
      organization_id: organizationId,
      name: cluster.name,
      site_id: cluster.site?.id ?? 'default',
      site_name: cluster.site?.name ?? 'default',
      scheduler: cluster.scheduler ?? null,
      driver: JSON.stringify({ simulated }),
      expected_node_count: simulated?.computeNodes ?? null,
    },
    now,
  );
  return id;
}

async function personId(tx: Tx, email: string, now: number): Promise<string> {
  const known = await findUserByEmail(tx.db, email);
  return known?.id ?? createUser(tx, { email, displayName: email }, now);
}
