/** What the login decision rests on, read in one go. */
import type { LoginFacts } from '../domain/login.ts';
import { loginNodesFor } from '../domain/manifest.ts';
import type { Reader } from './index.ts';
import { reportOf } from './observations.ts';
import { fromTime } from './time.ts';

/**
 * The facts of a login name and a key on a cluster; undefined unless that name is, or was, a member's and the key is, or
 * was, theirs.
 */
export async function findLoginFacts(
  db: Reader,
  login: { clusterId: string; username: string; fingerprint: string },
): Promise<LoginFacts | undefined> {
  const row = await db
    .selectFrom('clusters as c')
    .innerJoin('organization_usernames as n', 'n.org_id', 'c.organization_id')
    .innerJoin('memberships as m', (join) =>
      join.onRef('m.org_id', '=', 'n.org_id').onRef('m.user_id', '=', 'n.user_id'),
    )
    .innerJoin('users as u', 'u.id', 'n.user_id')
    .innerJoin('organizations as g', 'g.id', 'c.organization_id')
    .innerJoin('ssh_keys as k', 'k.user_id', 'n.user_id')
    .leftJoin('observations as o', 'o.cluster_id', 'c.id')
    .leftJoin('observed_accounts as a', (join) =>
      join.onRef('a.cluster_id', '=', 'c.id').onRef('a.user_id', '=', 'n.user_id'),
    )
    .leftJoin('access_list_users as l', (join) =>
      join
        .onRef('l.org_id', '=', 'c.organization_id')
        .onRef('l.user_id', '=', 'n.user_id')
        .onRef('l.since_version', '<=', 'o.list_version')
        .on((on) =>
          on.or([on('l.until_version', 'is', null), on('l.until_version', '>', on.ref('o.list_version'))]),
        ),
    )
    .leftJoin('access_lists as w', 'w.cluster_id', 'c.id')
    .leftJoin('access_list_users as p', (join) =>
      join
        .onRef('p.org_id', '=', 'c.organization_id')
        .onRef('p.user_id', '=', 'n.user_id')
        .on('p.until_version', 'is', null),
    )
    .select([
      'c.id as clusterId',
      'c.organization_id',
      'c.state',
      'c.scheduler',
      'n.user_id',
      'm.role',
      'm.lifecycle_state as membership_state',
      'u.lifecycle_state as user_state',
      'g.lifecycle_state as organization_state',
      'w.generation',
      'w.accepted_generation',
      'w.withdrawn',
      'p.user_id as listed_user_id',
      'u.login_shell',
      'k.id as key_id',
      'k.fingerprint',
      'k.lifecycle_state',
      'o.observed_at',
      'o.report',
      'o.failure',
      // What it says of this person by name goes before what its list version says.
      (eb) => eb.fn.coalesce('a.key_fingerprints', 'l.key_fingerprints').as('key_fingerprints'),
      (eb) => eb.fn.coalesce('a.login_state', 'l.desired_login_state').as('login_state'),
    ])
    .where('c.id', '=', login.clusterId)
    .where('n.username', '=', login.username)
    .where('k.fingerprint', '=', login.fingerprint)
    .executeTakeFirst();
  if (!row) return undefined;
  const granted = await db
    .selectFrom('member_permissions')
    .select('permission')
    .where('org_id', '=', row.organization_id)
    .where('user_id', '=', row.user_id)
    .execute();
  const loginNodes =
    row.report === null ? [] : loginNodesFor(reportOf({ report: row.report }), login.username);
  return {
    clusterId: row.clusterId,
    clusterState: row.state,
    takesAccessList: row.scheduler === 'sunk',
    userId: row.user_id,
    username: login.username,
    member:
      row.membership_state === 'active' && row.user_state === 'active' && row.organization_state === 'active',
    role: row.role,
    permissions: granted.map((permission) => permission.permission),
    shell: row.login_shell,
    key: { id: row.key_id, fingerprint: row.fingerprint, active: row.lifecycle_state === 'active' },
    inManifest:
      row.listed_user_id !== null && row.withdrawn === 0 && row.accepted_generation === row.generation,
    confirmed:
      row.login_state === null || row.key_fingerprints === null
        ? undefined
        : { loginState: row.login_state, keyFingerprints: JSON.parse(row.key_fingerprints) as string[] },
    loginNodes: loginNodes.map(({ host, port, hostKey }) => ({ host, port, hostKey })),
    observedAt: row.observed_at === null ? undefined : fromTime(row.observed_at),
    failure: row.failure,
  };
}
