/** How soon a key that was pressed is on the screen: one byte to an open terminal and back, alone and beside a copy. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from './percentile.ts';
import { median } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { openSshLab, whyNoSsh } from './ssh-lab.ts';
import type { Report, Row } from './table.ts';

const rounds = 6;
/** Of fewer, the 99th percentile is that of what else the machine did. */
const bytesARound = 500;
const pauseMs = 3;
const aim = 1.5;

type Way = 'direct' | 'jump' | 'ours';
const order: Way[] = ['direct', 'jump', 'ours'];

// The newer clients send at fixed intervals, to hide how fast someone types: that is not what is measured.
export const terminalOptions = [
  'IgnoreUnknown ObscureKeystrokeTiming',
  'ObscureKeystrokeTiming no',
  'RequestTTY force',
];

export async function benchEcho(scratch: Scratch): Promise<Report> {
  const reason = await whyNoSsh(scratch);
  if (reason) return { rows: [], notes: [`echo is left out: ${reason}.`] };
  const lab = await openSshLab(scratch);
  const ways = lab.ways(...terminalOptions);
  const terminals = {} as Record<Way, Terminal>;
  for (const way of order) terminals[way] = await openTerminal(scratch, ways[way]);

  async function measure(copies: boolean): Promise<Record<Way, number[]>> {
    const seen: Record<Way, number[]> = { direct: [], jump: [], ours: [] };
    for (let round = -1; round < rounds; round += 1) {
      for (const way of order) {
        const copy = copies
          ? scratch.start(['ssh', ...lab.ways()[way], 'cat /dev/zero'], { stdio: 'ignore' })
          : undefined;
        if (copy) await sleep(700);
        const times = await echoTimes(terminals[way]);
        // The first round warms up.
        if (round >= 0) seen[way].push(...times);
        if (copy) await scratch.end(copy);
      }
    }
    return seen;
  }

  const rows = [
    ...compare('echo in a terminal', await measure(false)),
    ...compare('echo beside a copy', await measure(true)),
  ];
  return { rows, notes: [] };
}

export interface Terminal {
  child: ChildProcess;
}

export async function openTerminal(scratch: Scratch, way: readonly string[]): Promise<Terminal> {
  // `cat` gives back what the terminal passes on at once.
  const child = scratch.start(['ssh', ...way, 'stty raw -echo; echo up; exec cat'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  if (child.stdout) await once(child.stdout, 'data');
  await sleep(200);
  return { child };
}

/** How long each of so many bytes takes, in ms. */
export async function echoTimes(terminal: Terminal, count = bytesARound): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i += 1) {
    times.push(await echoOnce(terminal));
    await sleep(pauseMs);
  }
  return times;
}

/** How long one byte takes to the terminal and back, in ms. */
export async function echoOnce({ child }: Terminal): Promise<number> {
  if (!child.stdin || !child.stdout) throw new Error('no terminal');
  const back = once(child.stdout, 'data');
  const began = performance.now();
  child.stdin.write('x');
  await back;
  return performance.now() - began;
}

function compare(name: string, seen: Record<Way, number[]>): Row[] {
  const time = (values: number[], share: number) => `${percentile(values, share).toFixed(2)} ms`;
  const row = (what: string, share: number, reference: 'jump' | 'direct', label: string): Row => ({
    row: what,
    ours: time(seen.ours, share),
    reference: `${time(seen[reference], share)}  ${label}`,
    ratio: percentile(seen.ours, share) / percentile(seen[reference], share),
    aim: '',
  });
  const worst = row(`${name}, 99th percentile`, 0.99, 'jump', 'ssh -J');
  return [
    { ...worst, aim: `≤ ${aim}`, met: worst.ratio <= aim },
    row('', 0.99, 'direct', 'ssh'),
    { ...row('  the median', 0.5, 'jump', 'ssh -J'), ratio: median(seen.ours) / median(seen.jump) },
  ];
}
