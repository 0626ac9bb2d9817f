/** What a process has used so far, as the kernel counts it. */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Processor time, of all threads, user and system; the kernel counts in hundredths of a second. */
export function cpuSeconds(child: ChildProcess): number {
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  // The program's name, in brackets, may hold anything; what is counted comes after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** The same with that of the children it has waited for. */
export function withChildrenSeconds(child: ChildProcess): number {
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12]) + Number(fields[13]) + Number(fields[14])) / 100;
}

/** Resident memory. */
export function memoryMiB(child: ChildProcess): number {
  const kib = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1];
  return Number(kib) / 1024;
}

/** Bytes handed to the kernel to write, to files and to sockets alike. */
export function writtenBytes(pid: number | 'self' | undefined): number {
  return Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);
}
