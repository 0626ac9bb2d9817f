/** Clusters, as operators take them into service and out of it. */
import { accessListState, isRecent } from '../../../domain/access/manifest.ts';
import {
  type Cluster,
  isInService,
  type Machine,
  mergeSides,
  type SideState,
  sideTrouble,
} from '../../../domain/clusters/cluster.ts';
import { checkLab } from '../../../domain/clusters/lab.ts';
import { checkHostSettings } from '../../../domain/clusters/lab-paths.ts';
import { invalidState, notFound } from '../../../domain/error.ts';
import type { SidePasses } from '../../../domain/installation-state.ts';
import { present, snakeCased } from '../../../domain/present.ts';
import { findAccessList } from '../../../store/access/access-lists.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import { abandonRelease } from '../../../store/clusters/cluster-sides.ts';
import {
  createCluster,
  findCluster,
  listAllClusters,
  raiseDesiredGeneration,
  startRelease,
} from '../../../store/clusters/clusters.ts';
import { findMachine, listMachines, updateMachineState } from '../../../store/clusters/machines.ts';
import { findObservation, listSideStates } from '../../../store/clusters/observations.ts';
import type { Reader, Tx } from '../../../store/engine/index.ts';
import { fromTime, toTime } from '../../../store/engine/time.ts';
import { findOrganization, findOrganizationBySlug } from '../../../store/organizations/organizations.ts';
import { refuseSimulated } from '../../../store/servers/servers.ts';
import { clusterBody, deliveryOf } from '../clusters.ts';
import type { BusinessDeps, InstallationView, Operation } from '../operation.ts';
import { operatorAsks, requireCluster, requireOperator, staffReads } from './about.ts';
import { failingSince } from './installation.ts';

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

export const operatorCreateCluster: Operation<'operatorCreateCluster'> = (deps, request) => {
  const { body } = request;
  checkLab({ clusters: [body] });
  checkHostSettings(deps.hostRules, body, undefined);
  return runCommand(deps.store, request, {
    operation: 'operatorCreateCluster',
    meaning: [body],
    about: { target: body.name, details: `organization ${body.organization}` },
    authorize: requireOperator,
    async apply(tx) {
      const organization = await findOrganizationBySlug(tx.db, body.organization);
      if (!organization) throw notFound(`There is no organization ${body.organization}.`);
      const id = await createCluster(tx, { ...body, organizationId: organization.id });
      await refuseSimulated(tx);
      const about = { target: id, clusterId: id, organizationId: organization.id };
      return { result: await clusterReply(deps, tx, id), about };
    },
  });
};

export const operatorReleaseCluster: Operation<'operatorReleaseCluster'> = (deps, request) => {
  const clusterId = request.path.clusterID.toLowerCase();
  const { abandon = false } = request.query;
  const about = { target: clusterId, clusterId };
  const meaning = abandon ? [clusterId, 'abandon'] : [clusterId];
  return runCommand(deps.store, request, {
    operation: 'operatorReleaseCluster',
    meaning,
    about,
    authorize: requireOperator,
    async apply(tx, commandId) {
      const { name, organizationId } = await requireCluster(tx.db, clusterId);
      await startRelease(tx, { clusterId, commandId });
      if (abandon) await abandonRelease(tx, await requireCluster(tx.db, clusterId));
      const details = abandon ? `${name}, abandoned` : name;
      return { result: await clusterReply(deps, tx, clusterId), about: { details, organizationId } };
    },
  });
};

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
): Operation<typeof operation> {
  return async ({ store }, request) => {
    const machineId = request.path.machineID.toLowerCase();
    const known = await findMachine(store.read, machineId);
    const home = known && (await findCluster(store.read, known.clusterId));
    return runCommand(store, request, {
      operation,
      meaning: [machineId],
      about: {
        target: known?.id ?? 'machine',
        organizationId: home?.organizationId ?? null,
        clusterId: home?.id ?? null,
      },
      authorize: requireOperator,
      async apply(tx) {
        const machine = await findMachine(tx.db, machineId);
        if (!machine) {
          throw notFound('There is no such machine, or its cluster no longer reports it.');
        }
        const cluster = await findCluster(tx.db, machine.clusterId);
        if (!cluster || !isInService(cluster)) {
          throw invalidState(`The cluster of the machine is ${cluster?.state}.`);
        }
        if (machine.lifecycleState === state) {
          return {
            result: machineBody(machine, tx.now),
            about: { details: `${machine.name} stays ${state}` },
          };
        }
        await updateMachineState(tx, machineId, state);
        // What may run where is part of what the cluster is asked to be.
        await raiseDesiredGeneration(tx, machine.clusterId);
        const updated = (await findMachine(tx.db, machineId)) ?? machine;
        const details = `${machine.name}: ${machine.lifecycleState} → ${state}`;
        return { result: machineBody(updated, tx.now), about: { details } };
      },
    });
  };
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
