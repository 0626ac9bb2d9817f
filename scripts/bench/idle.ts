/** What a session costs that does nothing: memory of the gateway, and of the processes of OpenSSH's jump host. */
import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldOrder } from './hold.ts';
import { nextLine, program } from './program.ts';
import type { Scratch } from './scratch.ts';
import { openSshLab, whyNoSsh } from './ssh-lab.ts';
import type { Report } from './table.ts';
import { memoryMiB } from './usage.ts';

const sessions = 500;
/** The jump host has a process or two for each: fewer show as much. */
const jumpSessions = 50;
const aimKiB = 400;
/** What a login needs for a moment is given back by then. */
const settleMs = 5_000;

export async function benchIdle(scratch: Scratch): Promise<Report> {
  const reason = await whyNoSsh(scratch);
  if (reason) return { rows: [], notes: [`idle is left out: ${reason}.`] };
  const lab = await openSshLab(scratch);
  const { ports, names, userKeyFile: keyFile } = lab;
  const hold = async (order: HoldOrder) => {
    const child = scratch.start(program('hold.ts', order), { stdio: ['ignore', 'pipe', 'inherit'] });
    await nextLine(child);
    await sleep(settleMs);
    return child;
  };
  const target = { port: ports.gateway, username: names.gateway };
  // The code of a login is loaded and compiled once, with the first.
  await scratch.end(await hold({ count: 20, keyFile, target }));
  const before = memoryMiB(lab.gateway);
  const held = await hold({ count: sessions, keyFile, target });
  const ours = ((memoryMiB(lab.gateway) - before) * 1024) / sessions;
  await scratch.end(held);

  const node = { port: ports.node, username: names.node };
  const jump = { port: ports.jump, username: names.node };
  const empty = proportionalKiB(lab.jump);
  const jumping = await hold({ count: jumpSessions, keyFile, target: node, jump });
  const reference = (proportionalKiB(lab.jump) - empty) / jumpSessions;
  await scratch.end(jumping);
  return {
    rows: [
      {
        row: `each of ${sessions} idle sessions`,
        ours: `${ours.toFixed(0)} KiB`,
        reference: `${reference.toFixed(0)} KiB  jump host, of ${jumpSessions}`,
        ratio: ours / reference,
        aim: `≤ ${aimKiB} KiB`,
        met: ours <= aimKiB,
      },
    ],
    notes: [],
  };
}

/** Memory of a process and all below it, what they share divided among them. */
function proportionalKiB(top: ChildProcess): number {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    const stat = read(`/proc/${name}/stat`);
    parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
  }
  const isBelow = (pid: number | undefined): boolean =>
    pid !== undefined && (pid === top.pid || isBelow(parents.get(pid)));
  return [...parents.keys()]
    .filter(isBelow)
    .map((pid) => Number(/^Pss:\s*(\d+) kB$/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0))
    .reduce((sum, kib) => sum + kib, 0);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // It has just ended.
    return '';
  }
}
