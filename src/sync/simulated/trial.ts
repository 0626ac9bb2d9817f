/** Simulates slurmctld's check of a configuration: like a real one, it does not start with a partition of unknown nodes. */
import type { ConditionReport, MachineReport, Manifest } from '../../domain/access/manifest.ts';
import { rejectedReason, type SlurmConfiguration } from '../../domain/slurm/configuration.ts';
import { cutText } from '../../domain/text.ts';

/** A configuration that slurmctld rejected. */
export interface Rejection {
  desiredGeneration: number;
  message: string;
}

const mostShown = 60;
const mostExpanded = 10_000;

/** Returns the error with which slurmctld would fail to start; undefined when it would start. */
export function tryConfiguration(
  { desiredGeneration, slurmConfiguration }: Manifest,
  machines: readonly MachineReport[],
): Rejection | undefined {
  const message = faultIn(slurmConfiguration, new Set(machines.map(({ name }) => name)));
  return message === undefined ? undefined : { desiredGeneration, message };
}

function faultIn({ slurmPartitions = '' }: SlurmConfiguration, machines: ReadonlySet<string>) {
  for (const line of slurmPartitions.split('\n')) {
    const text = line.replace(/#.*/, '').trim();
    if (text === '') continue;
    const [, name] = /^PartitionName\s*=\s*(\S+)/i.exec(text) ?? [];
    if (name === undefined) return `slurmctld: error: Parsing error at unrecognized key: ${cut(text)}`;
    const [, nodes = ''] = /\sNodes\s*=\s*(\S+)/i.exec(text) ?? [];
    const unknown = expand(nodes).find((node) => node.toUpperCase() !== 'ALL' && !machines.has(node));
    if (unknown !== undefined) {
      return `slurmctld: fatal: Invalid node name ${cut(unknown)} in partition ${cut(name)}.`;
    }
  }
  return undefined;
}

/** Expands a host list such as `a1,b[1-3,7]` into names, up to a limit. */
function expand(list: string): string[] {
  const names: string[] = [];
  for (const [token] of list.matchAll(/[^,[]+(\[[^\]]*\]?)?/g)) {
    const [, prefix = '', ranges] = /^([^[]*)(?:\[([^\]]*)\]?)?/.exec(token) ?? [];
    for (const range of (ranges ?? '').split(',')) {
      const [from = '', to = from] = range.split('-');
      for (let at = Number(from); at <= Number(to) && names.length < mostExpanded; at += 1) {
        names.push(prefix + (range === '' ? '' : String(at).padStart(from.length, '0')));
      }
    }
  }
  return names;
}

function cut(text: string): string {
  return text.length > mostShown ? `${cutText(text, mostShown)}…` : text;
}

export function rejectionCondition({ desiredGeneration, message }: Rejection): ConditionReport {
  return { status: 'False', observedGeneration: desiredGeneration, reason: rejectedReason, message };
}
