/** The machines of clusters, as operators see them and let them work. */
import { isRecent } from '../../../domain/access/list.ts';
import { isInService } from '../../../domain/clusters/cluster.ts';
import type { Machine } from '../../../domain/clusters/machine.ts';
import { DomainError } from '../../../domain/error.ts';
import type { CommandReply } from '../../../domain/operation.ts';
import { runCommand } from '../../../store/audit/commands.ts';
import { findCluster, raiseDesiredGeneration } from '../../../store/clusters/clusters.ts';
import { findMachine, listMachines, updateMachineState } from '../../../store/clusters/machines.ts';
import { fromTime } from '../../../store/engine/time.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest, Operation } from '../operation.ts';
import { requireOperator, requireStaff } from './staff.ts';

/** The machines that a cluster reports, by name. */
export const operatorListMachines: Operation<'operatorListMachines'> = async (
  { store },
  { caller, path, now },
) => {
  await requireStaff(store.read, caller.userId, 'staff.read');
  const clusterId = path.clusterID.toLowerCase();
  if (!(await findCluster(store.read, clusterId))) {
    throw new DomainError('not_found', 'There is no such cluster.');
  }
  const machines = await listMachines(store.read, clusterId);
  machines.sort((a, b) => byName.compare(a.name, b.name));
  return { machines: machines.map((machine) => machineBody(machine, now)) };
};

/** Lets a machine work; one that may already stays as it is. */
export const operatorAdmitMachine: Operation<'operatorAdmitMachine'> = async (deps, request) =>
  setState(deps, request, 'operatorAdmitMachine', 'admitted');

/** Keeps a machine from work; one that is kept from it already stays as it is. */
export const operatorQuarantineMachine: Operation<'operatorQuarantineMachine'> = async (deps, request) =>
  setState(deps, request, 'operatorQuarantineMachine', 'quarantined');

async function setState(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorAdmitMachine' | 'operatorQuarantineMachine'>,
  operation: string,
  state: 'admitted' | 'quarantined',
): Promise<CommandReply<BusinessReply<'operatorAdmitMachine'>>> {
  const { now } = request;
  const machineId = request.path.machineID.toLowerCase();
  const known = await findMachine(deps.store.read, machineId);
  const home = known && (await findCluster(deps.store.read, known.clusterId));
  const about = {
    target: known?.id ?? 'machine',
    organizationId: home?.organizationId ?? null,
    clusterId: home?.id ?? null,
  };
  return runCommand(deps.store, request, {
    operation,
    meaning: [machineId],
    about,
    authorize: requireOperator,
    async apply(tx) {
      const machine = await findMachine(tx.db, machineId);
      if (!machine) {
        throw new DomainError('not_found', 'There is no such machine, or its cluster no longer reports it.');
      }
      const cluster = await findCluster(tx.db, machine.clusterId);
      if (!cluster || !isInService(cluster)) {
        throw new DomainError('invalid_state', `The cluster of the machine is ${cluster?.state}.`);
      }
      if (machine.lifecycleState === state) {
        return { result: machineBody(machine, now), about: { details: `${machine.name} stays ${state}` } };
      }
      await updateMachineState(tx, machineId, state);
      // What may run where is part of what the cluster is asked to be.
      await raiseDesiredGeneration(tx, machine.clusterId);
      const updated = (await findMachine(tx.db, machineId)) ?? machine;
      const details = `${machine.name}: ${machine.lifecycleState} → ${state}`;
      return { result: machineBody(updated, now), about: { details } };
    },
  });
}

const byName = new Intl.Collator('en', { numeric: true });

function machineBody({ report, ...machine }: Machine, now: number): BusinessReply<'operatorAdmitMachine'> {
  const { gpuModel, gpuCount, cpuCores, memoryGib } = report ?? {};
  return {
    id: machine.id,
    cluster_id: machine.clusterId,
    name: machine.name,
    lifecycle_state: machine.lifecycleState,
    ...(gpuModel === undefined ? {} : { gpu_model: gpuModel }),
    ...(gpuCount === undefined ? {} : { gpu_count: gpuCount }),
    ...(cpuCores === undefined ? {} : { cpu_cores: cpuCores }),
    ...(memoryGib === undefined ? {} : { memory_gib: memoryGib }),
    ...(report === undefined ? {} : { ready: report.ready, phase: report.phase }),
    ...(report?.gpusInUse === undefined ? {} : { gpus_in_use: report.gpusInUse }),
    ...(report?.reason === undefined ? {} : { reason: report.reason }),
    ...(machine.observedAt === null || isRecent(fromTime(machine.observedAt), now) ? {} : { stale: true }),
    ...(machine.observedAt === null ? {} : { observed_at: machine.observedAt }),
    created_at: machine.createdAt,
    updated_at: machine.updatedAt,
  };
}
