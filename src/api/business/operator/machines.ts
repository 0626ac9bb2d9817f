/** The machines of clusters, as operators see them and let them work. */
import { isRecent } from '../../../domain/access/list.ts';
import { isInService } from '../../../domain/clusters/cluster.ts';
import type { Machine } from '../../../domain/clusters/machine.ts';
import { invalidState, notFound } from '../../../domain/error.ts';
import { present, snakeCased } from '../../../domain/present.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import { findCluster, raiseDesiredGeneration } from '../../../store/clusters/clusters.ts';
import { findMachine, listMachines, updateMachineState } from '../../../store/clusters/machines.ts';
import { fromTime } from '../../../store/engine/time.ts';
import type { Operation } from '../operation.ts';
import { requireCluster } from './about.ts';
import { requireOperator, requireStaff } from './staff.ts';

/** The machines that a cluster reports, by name. */
export const operatorListMachines: Operation<'operatorListMachines'> = async (
  { store },
  { caller, path, now },
) => {
  await requireStaff(store.read, caller.userId, 'staff.read');
  const clusterId = path.clusterID.toLowerCase();
  await requireCluster(store.read, clusterId);
  const machines = await listMachines(store.read, clusterId);
  machines.sort((a, b) => byName.compare(a.name, b.name));
  return { machines: machines.map((machine) => machineBody(machine, now)) };
};

/** Lets a machine work; one that may already stays as it is. */
export const operatorAdmitMachine = settingState('operatorAdmitMachine', 'admitted');
/** Keeps a machine from work; one that is kept from it already stays as it is. */
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
