/** People's current access to a Kubernetes cluster: by permission in its organization, and by grant. */
import type { ExpressionBuilder } from 'kysely';
import { keysIncluding } from '../../domain/access/permission.ts';
import type { Cluster } from '../../domain/clusters/cluster.ts';
import type { KubernetesAccess, KubernetesAccessFacts } from '../../domain/kubernetes/bindings.ts';
import { findBound } from '../clusters/cluster-sides.ts';
import type { Reader, Store } from '../engine/index.ts';
import { prepared } from '../engine/queries.ts';
import { findRow, listRows } from '../engine/rows.ts';
import { fromTime, toTime } from '../engine/time.ts';
import type { Schema } from '../generated/schema.ts';
import { listEverGranted, liveGrants } from '../organizations/grants.ts';
import { isLive, livePermissions } from '../organizations/memberships.ts';

type AccessStore = Pick<Store, 'read' | 'readSnapshot' | 'lapses'>;

const keys = keysIncluding('clusters.kubernetes');

/** Includes people's subjects at `issuer`, where one is given; leaves out people whose access has lapsed. */
export async function findKubernetesAccess(
  { readSnapshot, lapses }: AccessStore,
  cluster: Pick<Cluster, 'id' | 'organizationId'>,
  issuer: string | undefined,
  now: number,
): Promise<KubernetesAccess> {
  return readSnapshot((db) => accessIn(db, lapses, { cluster, issuer, at: toTime(now) }));
}

interface AccessQuery {
  cluster: Pick<Cluster, 'id' | 'organizationId'>;
  issuer?: string | undefined;
  at: string;
}

async function accessIn(
  db: Reader,
  lapses: Store['lapses'],
  { cluster, issuer, at }: AccessQuery,
): Promise<KubernetesAccess> {
  const owner = await findRow(db, 'organizations', { id: cluster.organizationId });
  const signedInAfter = lapses.signedInAfter(owner?.max_hours_without_sign_in ?? null);
  const members = await listMembers(db, cluster.organizationId, signedInAfter, at);
  const grants = await grantsOf(db, cluster.id, at, signedInAfter);
  const subjects = issuer === undefined ? new Map<string, string[]>() : await subjectsAt(db, issuer);
  const person = (row: { user_id: string; primary_email: string; preferred_username: string | null }) => ({
    userId: row.user_id,
    email: row.primary_email,
    preferredUsername: row.preferred_username,
    subjects: subjects.get(row.user_id) ?? [],
  });
  return {
    members: members.map(({ role, permissions, ...row }) => ({ ...person(row), role, permissions })),
    grants: grants.map(({ id, relation, scope, role_id: roleId, ...row }) => ({
      ...person(row),
      grantId: id,
      relation,
      scope,
      roleId,
    })),
  };
}

/** Gives the facts of any number of people from one snapshot of a cluster's access. */
export interface KubernetesLookup {
  of(userId: string): Promise<KubernetesAccessFacts>;
}

export async function findKubernetesLookup(
  source: AccessStore,
  cluster: Pick<Cluster, 'id' | 'organizationId'>,
  now: number,
): Promise<KubernetesLookup> {
  const { read: db, readSnapshot, lapses } = source;
  const [{ members, grants }, known] = await readSnapshot(async (moment) => [
    await accessIn(moment, lapses, { cluster, at: toTime(now) }),
    await findBound(moment, cluster.id),
  ]);
  return {
    async of(userId) {
      const isTheirs = (one: { userId: string }) => one.userId === userId;
      const access = { members: members.filter(isTheirs), grants: grants.filter(isTheirs) };
      return { access, userId, ...known, everGranted: await listEverGranted(db, cluster.id, userId) };
    },
  };
}

export async function findKubernetesAccessOf(
  source: AccessStore,
  cluster: Pick<Cluster, 'id' | 'organizationId'>,
  userId: string,
  now: number,
): Promise<KubernetesAccessFacts> {
  return (await findKubernetesLookup(source, cluster, now)).of(userId);
}

/** The time at which the next grant on a cluster ends by itself, in ms since 1970; undefined when none will. */
export async function findNextExpiry(
  db: Reader,
  clusterId: string,
  now: number,
): Promise<number | undefined> {
  const [row] = await expiriesOf(db, clusterId, toTime(now));
  return row?.expires_at == null ? undefined : fromTime(row.expires_at);
}

const grantsOf = prepared((db, clusterId: string, at: string, signedInAfter: string) =>
  grantsOn(db, clusterId, at)
    .innerJoin('users as u', 'u.id', 'g.user_id')
    .where('u.lifecycle_state', '=', 'active')
    .where(hasSignedIn(signedInAfter, at))
    .select(['g.id', 'g.user_id', 'u.primary_email', 'u.preferred_username'])
    .select(['g.relation', 'g.scope', 'g.role_id'])
    .orderBy('g.id'),
);

const expiriesOf = prepared((db, clusterId: string, at: string) =>
  grantsOn(db, clusterId, at)
    .select('g.expires_at')
    .where('g.expires_at', 'is not', null)
    .orderBy('g.expires_at')
    .limit(1),
);

function grantsOn(db: Reader, clusterId: string, at: string) {
  return liveGrants(db, at).where('g.resource_id', '=', clusterId);
}

async function listMembers(db: Reader, organizationId: string, signedInAfter: string, at: string) {
  const members = await membersOf(db, organizationId, signedInAfter, at);
  const granted = await permissionsIn(db, organizationId, at);
  const permissions = Map.groupBy(granted, (row) => row.user_id);
  return members.map((member) => ({
    ...member,
    permissions: (permissions.get(member.user_id) ?? []).map((row) => row.permission),
  }));
}

const membersOf = prepared((db, organizationId: string, signedInAfter: string, at: string) =>
  db
    .selectFrom('memberships as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .select(['m.user_id', 'm.role', 'u.primary_email', 'u.preferred_username'])
    .where('m.org_id', '=', organizationId)
    .where('m.lifecycle_state', '=', 'active')
    .where('u.lifecycle_state', '=', 'active')
    .where(hasSignedIn(signedInAfter, at))
    .where((eb) =>
      eb.or([
        eb('m.role', '!=', 'member'),
        eb.exists(
          eb
            .selectFrom('holdings as p')
            .select('p.user_id')
            .where('p.org_id', '=', organizationId)
            .whereRef('p.user_id', '=', 'm.user_id')
            .where('p.what', 'in', keys)
            .where(isLive(at)),
        ),
      ]),
    )
    .orderBy('m.user_id'),
);

const permissionsIn = prepared((db, organizationId: string, at: string) =>
  livePermissions(db, at)
    .select(['p.user_id', 'p.what as permission'])
    .where('p.org_id', '=', organizationId)
    .where('p.what', 'in', keys),
);

/** Condition: person `u` signed in after a time, or is exempt from that. */
function hasSignedIn(after: string, at: string) {
  return (eb: ExpressionBuilder<Schema & { u: Schema['users'] }, 'u'>) =>
    eb.or([
      eb(eb.fn.coalesce('u.last_sign_in_at', 'u.created_at'), '>', after),
      eb('u.sign_in_exempt_until', '>', at),
    ]);
}

async function subjectsAt(db: Reader, issuer: string): Promise<Map<string, string[]>> {
  const rows = await listRows(db, 'identities', { issuer });
  const byPerson = Map.groupBy(rows, (row) => row.user_id);
  return new Map([...byPerson].map(([userId, own]) => [userId, own.map(({ subject }) => subject)]));
}
