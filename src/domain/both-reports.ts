/** A cluster that runs Slurm and Kubernetes: one report of what each says. Undefined: it is not known. */
import type { MachineReport, Report, StorageReport } from './manifest.ts';

/** What is said where Slurm says nothing: that nobody's account is confirmed. */
const silence: Report = {
  manifestGeneration: 0,
  desiredGeneration: 0,
  controlPlaneReady: false,
  runningJobs: [],
  loginNodes: [],
  accounts: [],
  failure: null,
};

/** Slurm's list, people and scheduler; Kubernetes' API; and the machines and the storage of both. */
export function mergeReports(slurm: Report | undefined, kubernetes: Report | undefined): Report {
  const storage = mergeStorage(slurm?.storage, kubernetes?.storage);
  const parts = [slurm?.machines, kubernetes?.machines];
  const known = parts.filter((part) => part !== undefined);
  return {
    ...(slurm ?? silence),
    controlPlaneReady: (slurm?.controlPlaneReady ?? false) || (kubernetes?.controlPlaneReady ?? false),
    ...(storage ? { storage } : {}),
    ...(kubernetes?.kubernetes ? { kubernetes: kubernetes.kubernetes } : {}),
    kubernetesFailure: kubernetes?.kubernetesFailure,
    machines: known.length === 0 ? undefined : mergeMachines(known.flat()),
    partialMachines: known.length < parts.length,
  };
}

/** A machine that both know by the same name is one: what Slurm says of it, and of the rest what Kubernetes does. */
function mergeMachines(machines: readonly MachineReport[]): MachineReport[] {
  const merged = new Map<string, MachineReport>();
  for (const machine of machines) merged.set(machine.name, { ...machine, ...merged.get(machine.name) });
  return [...merged.values()];
}

/** What one of them has, the cluster has. What neither has, and one could not say, is not known. */
function mergeStorage(
  slurm: StorageReport | undefined,
  kubernetes: StorageReport | undefined,
): StorageReport | undefined {
  if (!slurm || !kubernetes) return slurm ?? kubernetes;
  const has = (type: 'ceph' | 'weka' | 'nfs') => {
    if (slurm[type] || kubernetes[type]) return true;
    return slurm[type] === undefined || kubernetes[type] === undefined ? undefined : false;
  };
  const [ceph, weka, nfs] = [has('ceph'), has('weka'), has('nfs')];
  return {
    ...slurm,
    ...kubernetes,
    ...(ceph === undefined ? {} : { ceph }),
    ...(weka === undefined ? {} : { weka }),
    ...(nfs === undefined ? {} : { nfs: nfs && !ceph && !weka }),
  };
}
