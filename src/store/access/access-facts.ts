/**
 * Reads the facts of the access decision (`domain/access/decision.ts`) in one statement: on PostgreSQL, several
 * statements see several snapshots.
 */
import { type RawBuilder, sql } from 'kysely';
import { type AccessFacts, isFitKey } from '../../domain/access/decision.ts';
import {
  type LoginMode,
  loginModeOf,
  loginNodesFor,
  type WaitingHost,
} from '../../domain/access/manifest.ts';
import { heldUntil, withLatestEnds } from '../../domain/access/permission.ts';
import { type DriverSettings, type KeptSlurmReport, waitingFor } from '../../domain/clusters/cluster.ts';
import { parseReport } from '../clusters/observations.ts';
import type { Reader, Store } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';

/** A person on a cluster: the facts of the decision, and the other fields that `ssh-access` shows. */
export interface PersonOnCluster {
  organizationId: string;
  facts: AccessFacts;
  shell: string;
  loginMode: LoginMode;
  /** The generation of the access list; 0 where there is none. */
  generation: number;
  /** Hosts that have not confirmed this person's last change, or cannot have their account. */
  waiting: readonly WaitingHost[];
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

/**
 * Finds the person who has this login name and key on the cluster, with the key's ID. Undefined unless the name is or
 * was a member's, and the key is or was theirs.
 */
export async function findLogin(
  { read: db, observationAges, lapses }: Pick<Store, 'read' | 'observationAges' | 'lapses'>,
  login: { clusterId: string; username: string; fingerprint: string },
): Promise<(PersonOnCluster & { userId: string; keyId: string }) | undefined> {
  const { clusterId, username, fingerprint } = login;
  const [row] = await loginOf(db, clusterId, username, fingerprint);
  if (!row) return undefined;
  const { user_id: userId, key_id: keyId } = row;
  return { ...personOn(clusterId, row, { observationAges, lapses }), userId, keyId };
}

/** A person on a cluster; undefined where there is no such cluster or person. */
export async function findPersonOnCluster(
  { read: db, observationAges, lapses }: Pick<Store, 'read' | 'observationAges' | 'lapses'>,
  clusterId: string,
  userId: string,
): Promise<PersonOnCluster | undefined> {
  const [row] = await personOf(db, clusterId, userId);
  return row && personOn(clusterId, row, { observationAges, lapses });
}

type FactsRow = Awaited<ReturnType<typeof personOf>>[number];

function personOn(
  clusterId: string,
  row: FactsRow,
  { observationAges, lapses }: Pick<Store, 'observationAges' | 'lapses'>,
): PersonOnCluster {
  const report =
    row.report === null || row.scheduler !== 'sunk' ? undefined : parseReport<KeptSlurmReport>(row.report);
  const observed = observedOf(row);
  const { keyFingerprints } = observed;
  const keys = sortKeys(row, lapses);
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
      ...rightsOf(row, lapses),
      ...keys,
      signIn: signInOf(row, lapses),
      policy: lapses.policy,
      isListed: row.listed_user_id !== null && row.withdrawn === 0,
      confirmed: confirmedOf(row, keyFingerprints),
      loginNodes: nodes.map(({ host, port, hostKey, via, up, missingShells }) => {
        const hasShell = row.shell === row.login_shell && missingShells?.includes(row.login_shell) === false;
        return { host, port, hostKey, up, ...(via && { via }), ...(hasShell && { hasShell }) };
      }),
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
    loginMode: report ? loginModeOf(report) : loginModeIn(row.driver),
    generation: row.generation ?? 0,
    waiting: waitingOf(row, report),
    observed,
  };
}

function waitingOf(
  { user_id, listed_since }: FactsRow,
  report: Partial<KeptSlurmReport> = {},
): WaitingHost[] {
  const blocked = (report.blocked ?? []).filter(({ userId }) => userId === user_id);
  return [...waitingFor(listed_since ?? 0, report), ...blocked];
}

/** Undefined also while a person's number is not known: then they have an account nowhere. */
function confirmedOf({ login_state, uid }: FactsRow, keyFingerprints: readonly string[]) {
  return login_state === null || uid === null ? undefined : { loginState: login_state, keyFingerprints };
}

function signInOf(row: FactsRow, lapses: Store['lapses']) {
  const {
    signed_in_at: signedInAt,
    sign_in_exempt_until: exemptUntil,
    max_hours_without_sign_in: hours,
  } = row;
  return lapses.signInOf({ signedInAt, exemptUntil, hours });
}

function observedOf(row: FactsRow): PersonOnCluster['observed'] {
  return {
    at: row.observed_at ?? undefined,
    manifestGeneration: row.manifest_generation ?? 0,
    keySetGeneration: row.ssh_key_set_generation ?? 0,
    keyFingerprints: JSON.parse(row.key_fingerprints ?? '[]') as string[],
    shell: row.shell ?? '',
  };
}

/** The login mode in a cluster's settings, which counts until the cluster has reported. */
function loginModeIn(driver: string): LoginMode {
  const { slurm, simulated } = JSON.parse(driver) as DriverSettings;
  return slurm?.loginMode ?? simulated?.loginMode ?? 'Shared';
}

/** The person's role and permissions in the organization, and the permissions that have ended. */
function rightsOf(row: FactsRow, lapses: Store['lapses']) {
  const role = row.role ?? 'member';
  const open = fieldsIn(row.granted).map(([key, end]) => ({ key, expiresAt: end === '' ? null : end }));
  const granted = role === 'member' ? withLatestEnds(open) : [];
  const endedBy = lapses.endedBy();
  const ended = granted.filter(({ expiresAt }) => expiresAt !== null && expiresAt <= endedBy);
  const held = granted.filter((one) => !ended.includes(one));
  const permissions = held.map(({ key }) => key);
  return { role, permissions, accessEndsAt: heldUntil(role, held).endOf('clusters.ssh'), ended };
}

/** The fingerprints of the person's active keys: accepted ones, those of an unfit type, and those that are too old. */
function sortKeys(row: FactsRow, lapses: Store['lapses']) {
  const after = lapses.registeredAfter();
  const person = { isStaff: row.is_staff !== 0, policy: lapses.policy };
  const sorted = { activeKeys: [] as string[], unfitKeys: [] as string[], lapsedKeys: [] as string[] };
  for (const [fingerprint, createdAt, type] of fieldsIn(row.keys)) {
    if (!isFitKey(type, person)) sorted.unfitKeys.push(fingerprint);
    else if (createdAt > after) sorted.activeKeys.push(fingerprint);
    else sorted.lapsedKeys.push(fingerprint);
  }
  return sorted;
}

/** Joins all rows into one text for `fieldsIn`: keys, fingerprints, times and types have no blank and no comma. */
const granted = sql<string | null>`(
  select string_agg(h.what || ' ' || coalesce(h.expires_at, ''), ',' order by h.what) from holdings h
  where h.org_id = c.organization_id and h.user_id = u.id and h.kind = 'permission' and h.ended_at is null)`;
const keys = sql<string | null>`(
  select string_agg(k.fingerprint || ' ' || k.created_at || ' ' || k.key_type, ',' order by k.fingerprint)
  from ssh_keys k where k.user_id = u.id and k.lifecycle_state = 'active')`;

const isStaff = sql<number>`(
  select case when exists (select 1 from staff_permissions s where s.user_id = u.id) then 1 else 0 end)`;

/** Joins a person and a cluster with every row about them; most of those may be missing. */
function personAndCluster(db: Reader, clusterId: string, userId: string | RawBuilder<string>) {
  return (
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
          // A cluster without a Slurm side shows when its other side was last observed.
          .on((on) =>
            on.or([
              on('o.side', '=', 'slurm'),
              on('c.scheduler', 'is', null),
              on('c.scheduler', '!=', 'sunk'),
            ]),
          ),
      )
      .leftJoin('observed_accounts as a', (join) =>
        join.onRef('a.cluster_id', '=', 'c.id').onRef('a.user_id', '=', 'u.id'),
      )
      // The person's entry in the list version that the cluster reports.
      .leftJoin('access_list_users as l', (join) =>
        join
          .onRef('l.org_id', '=', 'c.organization_id')
          .onRef('l.user_id', '=', 'u.id')
          .onRef('l.since_version', '<=', 'o.list_version')
          .on((on) =>
            on.or([on('l.until_version', 'is', null), on('l.until_version', '>', on.ref('o.list_version'))]),
          ),
      )
      .where('c.id', '=', clusterId)
  );
}

function factsOf(db: Reader, clusterId: string, userId: string | RawBuilder<string>) {
  return personAndCluster(db, clusterId, userId).select([
    'u.id as user_id',
    'c.organization_id',
    'c.driver',
    'c.state',
    'c.scheduler',
    'g.lifecycle_state as organization_state',
    'u.lifecycle_state as user_state',
    'u.login_shell',
    (eb) => eb.fn.coalesce('u.last_sign_in_at', 'u.created_at').as('signed_in_at'),
    'u.sign_in_exempt_until',
    'g.max_hours_without_sign_in',
    'm.lifecycle_state as membership_state',
    'm.role',
    'n.username',
    'n.uid',
    'w.generation',
    'w.withdrawn',
    'p.user_id as listed_user_id',
    'p.since_version as listed_since',
    'o.observed_at',
    'o.manifest_generation',
    'o.report',
    'o.failure',
    // An account that the cluster reports by name takes precedence over the entry in its list version.
    (eb) =>
      eb.fn.coalesce('a.ssh_key_set_generation', 'l.ssh_key_set_generation').as('ssh_key_set_generation'),
    (eb) => eb.fn.coalesce('a.key_fingerprints', 'l.key_fingerprints').as('key_fingerprints'),
    (eb) => eb.fn.coalesce('a.login_state', 'l.desired_login_state').as('login_state'),
    (eb) => eb.fn.coalesce('a.shell', 'l.shell').as('shell'),
    granted.as('granted'),
    keys.as('keys'),
    isStaff.as('is_staff'),
  ]);
}

const personOf = prepared((db, clusterId: string, userId: string) => factsOf(db, clusterId, userId));

const loginOf = prepared((db, clusterId: string, username: string, fingerprint: string) => {
  const ofKey = (column: string) =>
    sql<string>`(select ${sql.ref(column)} from ssh_keys where fingerprint = ${fingerprint})`;
  return factsOf(db, clusterId, ofKey('user_id'))
    .select(ofKey('id').as('key_id'))
    .where('n.username', '=', username);
});

function fieldsIn(text: string | null): [string, string, string][] {
  return (text?.split(',') ?? []).map((entry) => {
    const [first = '', second = '', third = ''] = entry.split(' ');
    return [first, second, third];
  });
}
