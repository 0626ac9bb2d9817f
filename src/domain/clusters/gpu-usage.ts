/** Counts a cluster's GPUs as free, in use, away with their machine, or unknown. Each GPU is in exactly one class. */

/** The limit on clusters in one `GET /usage` request. */
export const mostUsagesAtOnce = 100;

export interface GpuUsage {
  total: number;
  /** GPUs that no job or pod holds, on machines that take work. */
  free: number;
  /** GPUs held by a job or pod. */
  inUse: number;
  /** GPUs that no job or pod is known to hold, on machines that take no work: drained, down, quarantined. */
  away: number;
  unknown: number;
  freeNodes: number;
  biggestBlock: number;
}

export interface MachineUse {
  gpuCount: number;
  /** Undefined: not known. */
  gpusInUse: number | undefined;
  /** `unknown`: there is no recent report. */
  takesWork: boolean | 'unknown';
}

export function gpuUsage(machines: readonly MachineUse[]): GpuUsage {
  const sum: GpuUsage = { total: 0, free: 0, inUse: 0, away: 0, unknown: 0, freeNodes: 0, biggestBlock: 0 };
  for (const { gpuCount, gpusInUse, takesWork } of machines) {
    sum.total += gpuCount;
    const held = Math.min(gpusInUse ?? 0, gpuCount);
    const left = gpuCount - held;
    if (takesWork === 'unknown') {
      sum.unknown += gpuCount;
      continue;
    }
    sum.inUse += held;
    if (!takesWork) sum.away += left;
    else if (gpusInUse === undefined) sum.unknown += left;
    else {
      sum.free += left;
      sum.freeNodes += Number(held === 0 && left > 0);
      sum.biggestBlock = Math.max(sum.biggestBlock, left);
    }
  }
  return sum;
}

/** Such as "11 of 16 GPUs free". GPUs of unknown use never count as free. */
export function describeGpuUsage({
  total,
  free,
  unknown,
}: Pick<GpuUsage, 'total' | 'free' | 'unknown'>): string {
  if (total === 0) return 'No GPUs are known';
  if (unknown === 0) return `${free} of ${total} GPUs free`;
  if (unknown === total) return `${total} GPUs, their use unknown`;
  return `${free} of ${total} GPUs free, ${unknown} unknown`;
}

/** Such as "2 whole nodes, at most 8 on one"; undefined if none is free. */
export function describeFreeBlocks({
  freeNodes,
  biggestBlock,
}: Pick<GpuUsage, 'freeNodes' | 'biggestBlock'>): string | undefined {
  if (biggestBlock === 0) return undefined;
  const nodes = `${freeNodes === 0 ? 'no' : freeNodes} whole node${freeNodes === 1 ? '' : 's'}`;
  return `${nodes}, at most ${biggestBlock} on one`;
}
