/** The login nodes of every cluster, as the clusters reported them last. */
import type { LoginNodeReport } from '../../domain/access/manifest.ts';
import type { KeptSlurmReport } from '../../domain/clusters/cluster.ts';
import type { Reader } from '../engine/index.ts';
import { parseReport } from './observations.ts';

export interface ReportedLoginNode {
  cluster: string;
  node: LoginNodeReport;
  /** Of an account on the node; undefined where there is none. */
  username: string | undefined;
}

/** Of clusters that are in use, by the name of the cluster. */
export async function listLoginNodes(db: Reader): Promise<ReportedLoginNode[]> {
  const rows = await db
    .selectFrom('clusters as c')
    .innerJoin('observations as o', (join) =>
      join.onRef('o.cluster_id', '=', 'c.id').on('o.side', '=', 'slurm'),
    )
    .select(['c.id', 'c.name', 'c.organization_id', 'o.report', 'o.list_version'])
    .where('c.scheduler', '=', 'sunk')
    .orderBy('c.name')
    .execute();
  const all = rows.map(async ({ name, organization_id, report, list_version }) => {
    const { loginNodes } = parseReport<KeptSlurmReport>(report);
    const listed = await findListedUsername(db, organization_id, list_version);
    return loginNodes.map((node) => ({ cluster: name, node, username: node.username ?? listed }));
  });
  return (await Promise.all(all)).flat();
}

/** A username from a version of the organization's list, of a person with keys if there is one: others may be locked. */
async function findListedUsername(
  db: Reader,
  organizationId: string,
  version: number,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('access_list_users as l')
    .innerJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'l.org_id').onRef('n.user_id', '=', 'l.user_id'),
    )
    .select('n.username')
    .where('l.org_id', '=', organizationId)
    .where('l.since_version', '<=', version)
    .where((eb) => eb.or([eb('l.until_version', 'is', null), eb('l.until_version', '>', version)]))
    .orderBy('l.desired_login_state')
    .limit(1)
    .executeTakeFirst();
  return row?.username;
}
