/** How many GPUs of a cluster are free, held, away with their machine, or of unknown use. Every one is one of these. */

/** Of how many clusters one request asks (`GET /usage`). */
export const mostUsagesAtOnce = 100;

export interface GpuUsage {
  total: number;
  /** No job or pod holds them, and their machine takes work. */
  free: number;
  /** A job or a pod holds them. */
  inUse: number;
  /** No job or pod is known to hold them, and their machine takes no work: drained, down, quarantined. */
  away: number;
  unknown: number;
  freeNodes: number;
  biggestBlock: number;
}

export interface MachineUse {
  gpuCount: number;
  /** Undefined: not known. */
  gpusInUse: number | undefined;
  /** `unknown`: there is no report, or it is old. */
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

/** Such as "11 of 16 GPUs free". What is not known is never counted as free. */
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

/** Such as "2 whole nodes, at most 8 on one"; undefined where none is free. */
export function describeFreeBlocks({
  freeNodes,
  biggestBlock,
}: Pick<GpuUsage, 'freeNodes' | 'biggestBlock'>): string | undefined {
  if (biggestBlock === 0) return undefined;
  const nodes = `${freeNodes === 0 ? 'no' : freeNodes} whole node${freeNodes === 1 ? '' : 's'}`;
  return `${nodes}, at most ${biggestBlock} on one`;
}
