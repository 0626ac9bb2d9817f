/** Processes of this machine, as /proc shows them. */
import { readdirSync, readFileSync } from 'node:fs';

export function listProcesses(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** A file about a process, in latin1; empty where it has ended, or is another account's that does not show it. */
export function readProcess(pid: number, file: 'environ' | 'status' | 'stat' | 'cmdline'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}

/**
 * Its real, effective, saved and file system number, by its status: the owner of its files in /proc is root where it wants that.
 * None where it has ended, also where its parent has not waited for it yet.
 */
export function uidsOf(pid: number): number[] {
  const text = readProcess(pid, 'status');
  if (/^State:\s+[ZX]/m.test(text)) return [];
  return /^Uid:\s+(.*)$/m.exec(text)?.[1]?.split(/\s+/).map(Number) ?? [];
}
