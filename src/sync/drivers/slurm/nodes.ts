/** Slurm's output on its nodes and jobs (`scontrol -o show nodes`, `squeue`), as reports have it. */
import type { MachineReport, RunningJob } from '../../../domain/manifest.ts';

/** A line of `key=value` pairs; a value can have spaces only where it is the last. */
export function machineOf(line: string): MachineReport | undefined {
  const field = (key: string) => new RegExp(`(?:^| )${key}=(\\S*)`).exec(line)?.[1];
  const name = field('NodeName');
  if (!name) return undefined;
  const state = field('State') ?? 'UNKNOWN';
  const gpus = gpusIn(field('Gres') ?? '');
  const ready = takesWork(state);
  const gpusInUse = gpus.count === undefined ? undefined : gpusInUseOf(line);
  const reason = ready ? undefined : reasonOf(line);
  const cpus = Number(field('CPUTot'));
  const megabytes = Number(field('RealMemory'));
  return {
    name,
    ready,
    phase: state.toLowerCase(),
    ...(gpus.model === undefined ? {} : { gpuModel: gpus.model }),
    ...(gpus.count === undefined ? {} : { gpuCount: gpus.count }),
    ...(gpusInUse === undefined ? {} : { gpusInUse }),
    ...(reason === undefined ? {} : { reason }),
    ...(cpus > 0 ? { cpuCores: cpus } : {}),
    ...(megabytes > 0 ? { memoryGib: Math.floor(megabytes / 1024) } : {}),
  };
}

/** The GPUs in a list such as `gpu:h100:8(S:0-1),shard:64`: of the first model, and how many of all. */
function gpusIn(gres: string): { model: string | undefined; count: number | undefined } {
  const found = [...gres.matchAll(/(?:^|,)gpu(?::([A-Za-z0-9_.-]+))?:(\d+)/g)];
  const count = found.reduce((sum, [, , number]) => sum + Number(number), 0);
  return { model: found[0]?.[1], count: found.length === 0 ? undefined : count };
}

/**
 * How many GPUs jobs hold, as slurmctld counts them; undefined where it does not say. A GPU that is given away in parts
 * is in use, and is not counted as one: then it is not known either.
 */
function gpusInUseOf(line: string): number | undefined {
  const used = /(?:^| )GresUsed=(\S*)/.exec(line)?.[1];
  if (used === undefined || /(?:^|,)(?:shard|mps)(?::[A-Za-z0-9_.-]+)?:[1-9]/.test(used)) return undefined;
  return gpusIn(used).count;
}

const mostReason = 200;

/** What was said when the node was taken out of work, without who said it and when. */
function reasonOf(line: string): string | undefined {
  const text = / Reason=(.*)$/.exec(line)?.[1] ?? '';
  const [said = ''] = text.split(/ \[[^\s@\]]+@[^\s\]]+\]| (?:Comment|Extra|ReservationName|InstanceId)=/, 1);
  const reason = said.trim();
  return reason === '' ? undefined : reason.slice(0, mostReason);
}

function takesWork(state: string): boolean {
  const [base = '', ...flags] = state.replace(/[*~#!%$@^-]$/, '').split('+');
  // A mark at the end of the state: it does not respond, is powered down, or is on its way there.
  if (/[*~!%@^]$/.test(state)) return false;
  const isUp = ['IDLE', 'ALLOCATED', 'MIXED', 'COMPLETING'].includes(base);
  return isUp && !flags.some((flag) => /DRAIN|DOWN|FAIL|NOT_RESPONDING|MAINT|REBOOT|POWER|RES/.test(flag));
}

/** A line `id|user|nodes|name`. */
export function jobOf(line: string): RunningJob | undefined {
  const [id, user, nodes, ...name] = line.split('|');
  if (!id || !user || nodes === undefined) return undefined;
  return { id, user, name: name.join('|'), machines: expandHosts(nodes) };
}

/** The names in a host list such as `a1,n[01-03,7]`. */
export function expandHosts(list: string): string[] {
  const parts = list.match(/[^,[]+(?:\[[^\]]*\][^,[]*)*/g) ?? [];
  return parts.flatMap((part) => expandPart(part));
}

const maxNodes = 100_000;

function expandPart(part: string): string[] {
  const [, head = '', ranges, tail = ''] = /^([^[]*)\[([^\]]*)\](.*)$/.exec(part) ?? [];
  if (ranges === undefined) return part === '' ? [] : [part];
  const numbers = ranges.split(',').flatMap((range) => {
    const [from = '', to = from] = range.split('-');
    const count = Math.max(0, Math.min(maxNodes, Number(to) - Number(from) + 1));
    return Array.from({ length: count }, (_, index) => `${Number(from) + index}`.padStart(from.length, '0'));
  });
  return numbers.flatMap((number) =>
    expandPart(tail)
      .map((rest) => head + number + rest)
      .concat(tail ? [] : head + number),
  );
}
