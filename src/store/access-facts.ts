/** What the access decision rests on (`domain/access-decision.ts`), read of one moment. */
import type { AccessFacts } from '../domain/access-decision.ts';
import { type LoginMode, loginModeOf, loginNodesFor } from '../domain/manifest.ts';
import type { KeptSlurmReport } from '../domain/observation.ts';
import { heldUntil } from '../domain/permission-end.ts';
import type { Reader, Store } from './index.ts';
import { parseReport } from './observations.ts';
import { prepared } from './prepared.ts';
import { listActiveKeys } from './ssh-keys.ts';

/** One person on one cluster: the facts of the decision, and what else `ssh-access` shows. */
export interface PersonOnCluster {
  organizationId: string;
  facts: AccessFacts;
  /** The shell that the person asked for. */
  shell: string;
  loginMode: LoginMode;
  /** The newest access list and the one that Platform accepted; 0 where there is none. */
  generation: number;
  acceptedGeneration: number;
  observed: {
    at: string | undefined;
    /** 0 when unknown. */
    manifestGeneration: number;
    keySetGeneration: number;
    keyFingerprints: readonly string[];
    /** Empty when unknown. */
    shell: string;
  };
}

/** A login name and a key, found to be of one person. */
export interface Login {
  userId: string;
  keyId: string;
}

/** Whose login name and key these are; undefined unless that name is, or was, a member's and the key is, or was, theirs. */
export async function findLogin(
  db: Reader,
  login: { clusterId: string; username: string; fingerprint: string },
): Promise<Login | undefined> {
  const [row] = await loginOf(db, login.clusterId, login.username, login.fingerprint);
  return row;
}

const loginOf = prepared((db, clusterId: string, username: string, fingerprint: string) =>
  db
    .selectFrom('clusters as c')
    .innerJoin('organization_usernames as n', 'n.org_id', 'c.organization_id')
    .innerJoin('ssh_keys as k', 'k.user_id', 'n.user_id')
    .select(['n.user_id as userId', 'k.id as keyId'])
    .where('c.id', '=', clusterId)
    .where('n.username', '=', username)
    .where('k.fingerprint', '=', fingerprint),
);

/** A person on a cluster; undefined where there is no such cluster or person. */
export async function findPersonOnCluster(
  { read: db, observationAges, lapses }: Pick<Store, 'read' | 'observationAges' | 'lapses'>,
  clusterId: string,
  userId: string,
): Promise<PersonOnCluster | undefined> {
  // Asked in one turn of the event loop, and so of one moment.
  const [[row], permissions, keys] = await Promise.all([
    personOf(db, clusterId, userId),
    permissionsOf(db, clusterId, userId),
    listActiveKeys(db, userId),
  ]);
  if (!row) return undefined;
  const report =
    row.report === null || row.scheduler !== 'sunk' ? undefined : parseReport<KeptSlurmReport>(row.report);
  const keyFingerprints = JSON.parse(row.key_fingerprints ?? '[]') as string[];
  const [activeKeys, lapsedKeys] = partition(keys, lapses.registeredAfter());
  const role = row.role ?? 'member';
  const granted = permissions.map(({ permission: key, expires_at: expiresAt }) => ({ key, expiresAt }));
  const endedBy = lapses.endedBy();
  const ended = granted.filter(({ expiresAt }) => expiresAt !== null && expiresAt <= endedBy);
  const held = granted.filter((one) => !ended.includes(one));
  const nodes = report && row.username !== null ? loginNodesFor(report, row.username) : [];
  return {
    organizationId: row.organization_id,
    facts: {
      clusterState: row.state,
      takesAccessList: row.scheduler === 'sunk',
      username: row.username ?? undefined,
      isMember:
        row.membership_state === 'active' &&
        row.user_state === 'active' &&
        row.organization_state === 'active',
      role,
      permissions: held.map(({ key }) => key),
      accessEndsAt: heldUntil(role, held).endOf('clusters.ssh'),
      ended,
      activeKeys,
      lapsedKeys,
      signInLapsed: row.signed_in_at <= lapses.signedInAfter(),
      policy: lapses.policy,
      isListed: row.uid !== null && row.listed_user_id !== null && row.withdrawn === 0,
      confirmed: row.login_state === null ? undefined : { loginState: row.login_state, keyFingerprints },
      loginNodes: nodes.map(({ host, port, hostKey }) => ({ host, port, hostKey })),
      observedMsAgo:
        row.observed_at === null
          ? undefined
          : observationAges.msSince(
              clusterId,
              row.scheduler === 'sunk' ? 'slurm' : 'kubernetes',
              row.observed_at,
            ),
      failure: row.failure,
    },
    shell: row.login_shell,
    loginMode: report ? loginModeOf(report) : 'Shared',
    generation: row.generation ?? 0,
    acceptedGeneration: row.accepted_generation ?? 0,
    observed: {
      at: row.observed_at ?? undefined,
      manifestGeneration: row.manifest_generation ?? 0,
      keySetGeneration: row.ssh_key_set_generation ?? 0,
      keyFingerprints,
      shell: row.shell ?? '',
    },
  };
}

/** The fingerprints of the keys that were registered after a time, and those of the others. */
function partition(
  keys: readonly { fingerprint: string; createdAt: string }[],
  after: string,
): [string[], string[]] {
  const good = keys.filter(({ createdAt }) => createdAt > after);
  const others = keys.filter(({ createdAt }) => createdAt <= after);
  return [good.map(({ fingerprint }) => fingerprint), others.map(({ fingerprint }) => fingerprint)];
}

const personOf = prepared((db, clusterId: string, userId: string) =>
  db
    .selectFrom('clusters as c')
    .innerJoin('organizations as g', 'g.id', 'c.organization_id')
    .innerJoin('users as u', (join) => join.on('u.id', '=', userId))
    .leftJoin('memberships as m', (join) =>
      join.onRef('m.org_id', '=', 'c.organization_id').onRef('m.user_id', '=', 'u.id'),
    )
    .leftJoin('organization_usernames as n', (join) =>
      join.onRef('n.org_id', '=', 'c.organization_id').onRef('n.user_id', '=', 'u.id'),
    )
    .leftJoin('access_lists as w', 'w.cluster_id', 'c.id')
    .leftJoin('access_list_users as p', (join) =>
      join
        .onRef('p.org_id', '=', 'c.organization_id')
        .onRef('p.user_id', '=', 'u.id')
        .on('p.until_version', 'is', null),
    )
    .leftJoin('observations as o', (join) =>
      join
        .onRef('o.cluster_id', '=', 'c.id')
        // Where there is no Slurm side, how lately the other one was looked at is shown.
        .on((on) =>
          on.or([on('o.side', '=', 'slurm'), on('c.scheduler', 'is', null), on('c.scheduler', '!=', 'sunk')]),
        ),
    )
    .leftJoin('observed_accounts as a', (join) =>
      join.onRef('a.cluster_id', '=', 'c.id').onRef('a.user_id', '=', 'u.id'),
    )
    // The entry that the person had in the list version that the cluster has.
    .leftJoin('access_list_users as l', (join) =>
      join
        .onRef('l.org_id', '=', 'c.organization_id')
        .onRef('l.user_id', '=', 'u.id')
        .onRef('l.since_version', '<=', 'o.list_version')
        .on((on) =>
          on.or([on('l.until_version', 'is', null), on('l.until_version', '>', on.ref('o.list_version'))]),
        ),
    )
    .select([
      'c.organization_id',
      'c.state',
      'c.scheduler',
      'g.lifecycle_state as organization_state',
      'u.lifecycle_state as user_state',
      'u.login_shell',
      (eb) => eb.fn.coalesce('u.last_sign_in_at', 'u.created_at').as('signed_in_at'),
      'm.lifecycle_state as membership_state',
      'm.role',
      'n.username',
      'n.uid',
      'w.generation',
      'w.accepted_generation',
      'w.withdrawn',
      'p.user_id as listed_user_id',
      'o.observed_at',
      'o.manifest_generation',
      'o.report',
      'o.failure',
      // What the cluster says of this person by name goes before what its list version says.
      (eb) =>
        eb.fn.coalesce('a.ssh_key_set_generation', 'l.ssh_key_set_generation').as('ssh_key_set_generation'),
      (eb) => eb.fn.coalesce('a.key_fingerprints', 'l.key_fingerprints').as('key_fingerprints'),
      (eb) => eb.fn.coalesce('a.login_state', 'l.desired_login_state').as('login_state'),
      (eb) => eb.fn.coalesce('a.shell', 'l.shell').as('shell'),
    ])
    .where('c.id', '=', clusterId),
);

const permissionsOf = prepared((db, clusterId: string, userId: string) =>
  db
    .selectFrom('clusters as c')
    .innerJoin('member_permissions as p', 'p.org_id', 'c.organization_id')
    .select(['p.permission', 'p.expires_at'])
    .where('c.id', '=', clusterId)
    .where('p.user_id', '=', userId),
);
