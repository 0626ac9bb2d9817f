/** The machines of clusters, as operators see them and let them work. */
import { isInService } from '../../domain/cluster.ts';
import { DomainError } from '../../domain/error.ts';
import type { CommandReply } from '../../domain/operation.ts';
import { findCluster, raiseDesiredGeneration } from '../../store/clusters.ts';
import { findMachine, listMachines, type Machine, updateMachineState } from '../../store/machines.ts';
import type { BusinessDeps, BusinessReply, BusinessRequest } from '../operation.ts';
import { operatorCommand } from './command.ts';
import { requireStaff } from './staff.ts';

/** The machines that a cluster reports, by name. */
export async function operatorListMachines(
  { store }: BusinessDeps,
  { caller, path }: BusinessRequest<'operatorListMachines'>,
): Promise<BusinessReply<'operatorListMachines'>> {
  await requireStaff(store.read, caller.userId, 'staff.read');
  const clusterId = path.clusterID.toLowerCase();
  if (!(await findCluster(store.read, clusterId))) {
    throw new DomainError('not_found', 'There is no such cluster.');
  }
  const machines = await listMachines(store.read, clusterId);
  machines.sort((a, b) => byName.compare(a.name, b.name));
  return { machines: machines.map(machineBody) };
}

/** Lets a machine work; one that may already stays as it is. */
export async function operatorAdmitMachine(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorAdmitMachine'>,
): Promise<CommandReply<BusinessReply<'operatorAdmitMachine'>>> {
  return setState(deps, request, 'operatorAdmitMachine', 'admitted');
}

/** Keeps a machine from work; one that is kept from it already stays as it is. */
export async function operatorQuarantineMachine(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorQuarantineMachine'>,
): Promise<CommandReply<BusinessReply<'operatorQuarantineMachine'>>> {
  return setState(deps, request, 'operatorQuarantineMachine', 'quarantined');
}

async function setState(
  deps: BusinessDeps,
  request: BusinessRequest<'operatorAdmitMachine' | 'operatorQuarantineMachine'>,
  operation: string,
  state: 'admitted' | 'quarantined',
): Promise<CommandReply<BusinessReply<'operatorAdmitMachine'>>> {
  const machineId = request.path.machineID.toLowerCase();
  const { now } = request;
  const known = await findMachine(deps.store.read, machineId);
  const home = known && (await findCluster(deps.store.read, known.cluster_id));
  const about = {
    target: known?.id ?? 'machine',
    organization_id: home?.organizationId ?? null,
    cluster_id: home?.id ?? null,
  };
  return operatorCommand(deps, request, { operation, meaning: [machineId], about }, async (tx) => {
    const machine = await findMachine(tx.db, machineId);
    if (!machine) {
      throw new DomainError('not_found', 'There is no such machine, or its cluster no longer reports it.');
    }
    const cluster = await findCluster(tx.db, machine.cluster_id);
    if (!cluster || !isInService(cluster)) {
      throw new DomainError('invalid_state', `The cluster of the machine is ${cluster?.state}.`);
    }
    if (machine.lifecycle_state === state) {
      return { result: machineBody(machine), about: { details: `${machine.name} stays ${state}` } };
    }
    await updateMachineState(tx, machineId, state, now);
    // What may run where is part of what the cluster is asked to be.
    await raiseDesiredGeneration(tx, machine.cluster_id, now);
    const updated = (await findMachine(tx.db, machineId)) ?? machine;
    const details = `${machine.name}: ${machine.lifecycle_state} → ${state}`;
    return { result: machineBody(updated), about: { details } };
  });
}

const byName = new Intl.Collator('en', { numeric: true });

function machineBody({ report, ...machine }: Machine): BusinessReply<'operatorAdmitMachine'> {
  const { gpuModel, gpuCount, cpuCores, memoryGib } = report ?? {};
  return {
    id: machine.id,
    cluster_id: machine.cluster_id,
    name: machine.name,
    lifecycle_state: machine.lifecycle_state,
    ...(gpuModel === undefined ? {} : { gpu_model: gpuModel }),
    ...(gpuCount === undefined ? {} : { gpu_count: gpuCount }),
    ...(cpuCores === undefined ? {} : { cpu_cores: cpuCores }),
    ...(memoryGib === undefined ? {} : { memory_gib: memoryGib }),
    ...(report === undefined ? {} : { ready: report.ready, phase: report.phase }),
    ...(machine.observed_at === null ? {} : { observed_at: machine.observed_at }),
    created_at: machine.created_at,
    updated_at: machine.updated_at,
  };
}
