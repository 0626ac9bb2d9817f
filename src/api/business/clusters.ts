/** Clusters: their commercial record and access lists, and how operators take them in and out of service. */
import {
  type AccessList,
  accessListHash,
  accessListState,
  type Delivery,
  isRecent,
  observationState,
} from '../../domain/access/manifest.ts';
import { requireHeld } from '../../domain/access/permission.ts';
import {
  type Cluster,
  isInService,
  type Machine,
  mergeSides,
  type Observation,
  type SideState,
  sideTrouble,
} from '../../domain/clusters/cluster.ts';
import { checkLab, clusterOf } from '../../domain/clusters/lab.ts';
import { checkHostSettings } from '../../domain/clusters/lab-paths.ts';
import { invalidState, notFound } from '../../domain/error.ts';
import type { SidePasses } from '../../domain/installation-state.ts';
import { homeOf } from '../../domain/people/person.ts';
import { present, snakeCased } from '../../domain/present.ts';
import { checkDirectDate } from '../../domain/slurm/direct.ts';
import { findAccessList, listAccessListUsers, readAccessList } from '../../store/access/access-lists.ts';
import { markHandBack } from '../../store/access/adopted-accounts.ts';
import { findDirectLogins } from '../../store/access/direct-logins.ts';
import { abandonRelease } from '../../store/clusters/cluster-sides.ts';
import {
  createCluster,
  findCluster,
  listAllClusters,
  listOrganizationClusters,
  raiseDesiredGeneration,
  requireClusterOf,
  startRelease,
} from '../../store/clusters/clusters.ts';
import { findMachine, listMachines, updateMachineState } from '../../store/clusters/machines.ts';
import { findObservation, listSideStates } from '../../store/clusters/observations.ts';
import type { Reader, Tx } from '../../store/engine/index.ts';
import { fromTime, toTime } from '../../store/engine/time.ts';
import { findMembership } from '../../store/organizations/memberships.ts';
import { findOrganization, findOrganizationBySlug } from '../../store/organizations/organizations.ts';
import { refuseSimulated } from '../../store/servers/servers.ts';
import type { BusinessDeps, InstallationView, Operation } from './operation.ts';
import { operatorAsks, operatorWrites, requireCluster, staffReads } from './operator/about.ts';
import { failingSince } from './operator/installation.ts';
import { ownMembership } from './organizations.ts';

export const listClusters: Operation<'listClusters'> = async ({ store }, { caller, path, now }) => {
  const { permissions } = await ownMembership(store.read, path.orgID, caller.userId, now);
  if (!permissions.has('clusters.read')) return { clusters: [] };
  const clusters = await listOrganizationClusters(store.read, path.orgID);
  return { clusters: clusters.map(clusterBody) };
};

export const getCluster: Operation<'getCluster'> = async ({ store }, { caller, path, now }) =>
  clusterBody(await readableCluster(store.read, caller.userId, path, now));

export const listReservations: Operation<'listReservations'> = async ({ store }, { caller, path, now }) => {
  const { permissions } = await ownMembership(store.read, path.orgID, caller.userId, now);
  requireHeld(permissions, 'reservations.read');
  const clusters = await listOrganizationClusters(store.read, path.orgID);
  return {
    reservations: clusters.flatMap(({ id, organizationId, reservationId, expectedNodeCount }) =>
      reservationId === null
        ? []
        : {
            id: reservationId,
            organization_id: organizationId,
            cluster_id: id,
            node_count: expectedNodeCount ?? 0,
          },
    ),
  };
};

export const getClusterAccess: Operation<'getClusterAccess'> = async ({ store }, { caller, path, now }) => {
  const cluster = await readableCluster(store.read, caller.userId, path, now);
  const clusterId = cluster.id;
  const found = await readAccessList(store, clusterId);
  if (!found) throw notFound('No access list has been made for this cluster yet.');
  const { list, users } = found;
  const observation = await findObservation(store.read, clusterId, 'slurm');
  const delivery = deliveryOf(cluster, list, observation, now);
  return {
    cluster_id: clusterId,
    organization_id: cluster.organizationId,
    generation: list.generation,
    state: accessListState(delivery),
    observation_state: observationState(delivery),
    desired_generation: list.desiredGeneration,
    observed_generation: observation?.desiredGeneration ?? null,
    source_hash: accessListHash(users),
    updated_at: list.updatedAt,
    ...(observation &&
      observation.waiting.length > 0 && {
        waiting_hosts: observation.waiting.map(({ host, since = '', message }) => ({ host, since, message })),
      }),
    users: users.map((user) => ({
      user_id: user.userId,
      username: user.username,
      access_mode: user.accessMode,
      desired_login_state: user.desiredLoginState,
      ssh_key_set_generation: user.keySetGeneration,
      ...(user.uid === null
        ? {}
        : {
            allocation: {
              uid: user.uid,
              gid: user.gid ?? user.uid,
              home: homeOf(user.username),
              shell: user.shell,
            },
          }),
    })),
  };
};

/** A cluster of an organization, for callers with `clusters.read` there. Throws `forbidden`, then `not_found`. */
async function readableCluster(
  db: Reader,
  userId: string,
  { orgID, clusterID }: { orgID: string; clusterID: string },
  now: number,
): Promise<Cluster> {
  const membership = await findMembership(db, orgID, userId, now);
  requireHeld(membership?.permissions, 'clusters.read');
  return requireClusterOf(db, orgID, clusterID.toLowerCase());
}

/**
 * The input for a list's state. A cluster out of service is not observed any more: its last report stays valid until
 * the release. After that, the last list, which is empty, is in force, or the failed cleanup says why not.
 */
export function deliveryOf(
  cluster: Cluster,
  list: AccessList,
  observation: Observation | undefined,
  now: number,
): Delivery {
  const { generation } = list;
  if (cluster.state === 'released') {
    const failure = cluster.cleanupState === 'done' ? null : cluster.cleanupState;
    const last = { observedAt: now, manifestGeneration: generation, failure, waiting: [] };
    return { generation, observation: last, now };
  }
  const isAsked = isInService(cluster);
  return {
    generation,
    observation,
    now: isAsked || !observation ? now : observation.observedAt,
  };
}

function clusterBody(cluster: Cluster) {
  return {
    ...snakeCased(cluster, ['id', 'organizationId', 'state', 'reasonCode', 'expectedNodeCount']),
    ...snakeCased(cluster, ['assignedNodeCount', 'infrastructureReadyAt', 'teardownCompletedAt']),
    ...snakeCased(cluster, ['cleanupState', 'endCommandId', 'version', 'createdAt', 'updatedAt']),
    ...present({ selected_scheduler: cluster.scheduler, reservation_id: cluster.reservationId }),
  };
}

export const operatorListClusters = staffReads<'operatorListClusters'>(
  async ({ store, installation }, { now }) => {
    const clusters = await listAllClusters(store.read);
    return {
      clusters: await Promise.all(
        clusters.map((cluster) => operatorClusterBody(store.read, cluster, now, installation)),
      ),
    };
  },
);

export const operatorCreateCluster = operatorWrites('operatorCreateCluster', (deps, request) => {
  const body = clusterOf(request.body);
  checkLab({ clusters: [body] });
  checkDirectDate(body, undefined, request.now);
  checkHostSettings(deps.hostRules, body, undefined);
  return {
    meaning: [body],
    about: { target: body.name, details: `organization ${body.organization}` },
    async apply(tx) {
      const organization = await findOrganizationBySlug(tx.db, body.organization);
      if (!organization) throw notFound(`There is no organization ${body.organization}.`);
      const id = await createCluster(tx, { ...body, organizationId: organization.id });
      await refuseSimulated(tx);
      const about = { target: id, clusterId: id, organizationId: organization.id };
      return { result: await clusterReply(deps, tx, id), about };
    },
  };
});

export const operatorReleaseCluster = operatorWrites('operatorReleaseCluster', (deps, { path, query }) => {
  const clusterId = path.clusterID.toLowerCase();
  const { abandon = false, hand_back: handBack = false } = query;
  return {
    meaning: [clusterId, ...(abandon ? ['abandon'] : []), ...(handBack ? ['hand back'] : [])],
    about: { target: clusterId, clusterId },
    async apply(tx, commandId) {
      const { name, organizationId } = await requireCluster(tx.db, clusterId);
      await startRelease(tx, { clusterId, commandId });
      if (handBack) await markHandBack(tx, clusterId);
      if (abandon) await abandonRelease(tx, await requireCluster(tx.db, clusterId));
      const details = [name, abandon && 'abandoned', handBack && 'handed back'].filter(Boolean).join(', ');
      return { result: await clusterReply(deps, tx, clusterId), about: { details, organizationId } };
    },
  };
});

export const operatorCheckCluster = operatorAsks<'operatorCheckCluster'>(
  async ({ store, checkCluster }, { path }) => {
    return checkCluster(await requireCluster(store.read, path.clusterID.toLowerCase()));
  },
);

async function clusterReply({ installation }: BusinessDeps, { db, now }: Tx, clusterId: string) {
  return operatorClusterBody(db, await requireCluster(db, clusterId), now, installation);
}

async function operatorClusterBody(
  db: Reader,
  cluster: Cluster,
  now: number,
  { passesOf }: InstallationView,
) {
  const [organization, list, observation, sides] = await Promise.all([
    findOrganization(db, cluster.organizationId),
    findAccessList(db, cluster.id),
    findObservation(db, cluster.id, 'slurm'),
    listSideStates(db, cluster),
  ]);
  const report = mergeSides(sides, now);
  const users = cluster.driver.slurm?.direct && (await listAccessListUsers(db, cluster.id));
  return {
    cluster: clusterBody(cluster),
    name: cluster.name,
    organization_slug: organization?.slug ?? '',
    site: { id: cluster.siteId, name: cluster.siteName },
    drivers: Object.keys(cluster.driver) as ('simulated' | 'slurm' | 'kubernetes')[],
    access_list: list
      ? {
          generation: list.generation,
          accepted_generation: list.generation,
          applied_generation: observation?.manifestGeneration ?? null,
          state: accessListState(deliveryOf(cluster, list, observation, now)),
          updated_at: list.updatedAt,
        }
      : null,
    sides: sides.map((state) => sideBody(state, now, passesOf(cluster.id, state.side))),
    observed_at: report.observedAt === undefined ? null : toTime(report.observedAt),
    failure: report.failure,
    ...present({ direct: users && (await findDirectLogins(db, cluster, users, now)) }),
  };
}

function sideBody(state: SideState, now: number, passes: SidePasses | undefined) {
  const { side, observation, observeFailure } = state;
  const reported = observation && isRecent(observation.observedAt, now) ? 'reported' : 'stale';
  return {
    side,
    state: observeFailure ? ('unreachable' as const) : observation ? reported : ('unreported' as const),
    observed_at: observation ? toTime(observation.observedAt) : null,
    failure: sideTrouble(state),
    failing_since: failingSince(state, passes),
    failures: passes?.failures ?? 0,
    next_try_at: passes?.nextAt === undefined ? null : toTime(passes.nextAt),
  } as const;
}

export const operatorSurveyCluster = operatorAsks<'operatorSurveyCluster'>(
  async ({ store, surveyCluster }, { path, body }) => {
    const cluster = await requireCluster(store.read, path.clusterID.toLowerCase());
    const organization = await findOrganization(store.read, cluster.organizationId);
    const { slug = '', displayName: name = '' } = organization ?? {};
    const found = await surveyCluster(cluster, body.names ?? []);
    return { cluster: cluster.name, organization: { slug, name }, ...found };
  },
);

export const operatorListMachines = staffReads<'operatorListMachines'>(async ({ store }, { path, now }) => {
  const clusterId = path.clusterID.toLowerCase();
  await requireCluster(store.read, clusterId);
  const machines = await listMachines(store.read, clusterId);
  machines.sort((a, b) => byName.compare(a.name, b.name));
  return { machines: machines.map((machine) => machineBody(machine, now)) };
});

export const operatorAdmitMachine = settingState('operatorAdmitMachine', 'admitted');
export const operatorQuarantineMachine = settingState('operatorQuarantineMachine', 'quarantined');

function settingState(
  operation: 'operatorAdmitMachine' | 'operatorQuarantineMachine',
  state: 'admitted' | 'quarantined',
) {
  return operatorWrites(operation, async ({ store }, { path }) => {
    const machineId = path.machineID.toLowerCase();
    const known = await findMachine(store.read, machineId);
    const home = known && (await findCluster(store.read, known.clusterId));
    return {
      meaning: [machineId],
      about: {
        target: known?.id ?? 'machine',
        organizationId: home?.organizationId ?? null,
        clusterId: home?.id ?? null,
      },
      async apply(tx) {
        const machine = await findMachine(tx.db, machineId);
        if (!machine) throw notFound('There is no such machine, or its cluster no longer reports it.');
        const cluster = await findCluster(tx.db, machine.clusterId);
        if (!cluster || !isInService(cluster))
          throw invalidState(`The cluster of the machine is ${cluster?.state}.`);
        const { name, lifecycleState: before } = machine;
        if (before === state)
          return { result: machineBody(machine, tx.now), about: { details: `${name} stays ${state}` } };
        await updateMachineState(tx, machineId, state);
        // The set of usable machines is part of the cluster's desired configuration.
        await raiseDesiredGeneration(tx, machine.clusterId);
        const updated = (await findMachine(tx.db, machineId)) ?? machine;
        return {
          result: machineBody(updated, tx.now),
          about: { details: `${name}: ${before} → ${state}` },
        };
      },
    };
  });
}

const byName = new Intl.Collator('en', { numeric: true });

function machineBody({ report, observedAt, ...machine }: Machine, now: number) {
  const isStale = observedAt !== null && !isRecent(fromTime(observedAt), now);
  return {
    ...snakeCased(machine, ['id', 'clusterId', 'name', 'lifecycleState', 'createdAt', 'updatedAt']),
    ...(report && present(snakeCased(report, ['ready', 'phase', 'reason', 'gpuModel', 'gpuCount']))),
    ...(report && present(snakeCased(report, ['gpusInUse', 'cpuCores', 'memoryGib']))),
    ...present({ stale: isStale ? true : undefined, observed_at: observedAt }),
  };
}
