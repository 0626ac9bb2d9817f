/** Bulk data through the gateway, against the same sshd directly and behind OpenSSH's own jump host. */
import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { alternate, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { openSshLab, type SshLab, whyNoSsh } from './ssh-lab.ts';
import type { Report, Row } from './table.ts';
import { withChildrenSeconds } from './usage.ts';

const rounds = 3;
const gib = 1024 ** 3;
const aims = { 1: 0.95, 8: 1 } as const;

const ciphers = { 'default cipher': [], 'aes128-gcm': ['Ciphers aes128-gcm@openssh.com'] };
const directions = {
  down: (bytes: number) => `"$@" 'head -c ${bytes} /dev/zero' > /dev/null`,
  up: (bytes: number) => `head -c ${bytes} /dev/zero | "$@" 'cat > /dev/null'`,
};

const note =
  'copy, connect, echo: all that is measured runs on this machine. Behind ssh -J the person runs two clients and the ' +
  'jump host a process for each connection, so it can use as many cores as there are; the gateway is one thread. With ' +
  'two cores and the load of both ends on them a ratio tells mostly who needs less processor time in all; where the ' +
  'ends are machines of their own, the rows about processor time say more.';

export async function benchCopy(scratch: Scratch): Promise<Report> {
  const reason = await whyNoSsh(scratch);
  if (reason) return { rows: [], notes: [`copy is left out: ${reason}.`] };
  const lab = await openSshLab(scratch);
  const rows: Row[] = [];
  for (const streams of [1, 8] as const) {
    for (const [cipher, options] of Object.entries(ciphers)) {
      for (const direction of ['down', 'up'] as const) {
        const name = `${streams === 1 ? 'copy' : 'eight at once,'} ${direction}, ${cipher}`;
        rows.push(...(await copy(scratch, lab, { name, streams, direction, options })));
      }
    }
  }
  return { rows, notes: [note] };
}

interface Order {
  name: string;
  streams: 1 | 8;
  direction: 'up' | 'down';
  options: string[];
}

async function copy(scratch: Scratch, lab: SshLab, order: Order): Promise<Row[]> {
  const ways = lab.ways(...order.options);
  const bytes = gib / order.streams;
  const script = directions[order.direction](bytes);
  const once = (way: readonly string[]) => async () => {
    const began = performance.now();
    await Promise.all(
      Array.from({ length: order.streams }, () => scratch.run(['sh', '-c', script, 'sh', 'ssh', ...way])),
    );
    return gib / 1e6 / ((performance.now() - began) / 1000);
  };
  const used = { ours: [] as number[], jump: [] as number[] };
  const counted = (work: () => Promise<number>, child: ChildProcess, seconds: number[]) => async () => {
    const before = withChildrenSeconds(child);
    const rate = await work();
    // A child of the jump host counts when it has ended.
    await sleep(300);
    seconds.push(withChildrenSeconds(child) - before);
    return rate;
  };
  const seen = await alternate(rounds, {
    direct: once(ways.direct),
    jump: counted(once(ways.jump), lab.jump, used.jump),
    ours: counted(once(ways.ours), lab.gateway, used.ours),
  });
  return [...compare(order, seen), processorRow(used)];
}

function compare({ name, streams }: Order, seen: Record<'direct' | 'jump' | 'ours', number[]>): Row[] {
  const rate = (values: number[]) => `${median(values).toFixed(0)} MB/s`;
  const ratio = medianRatio(seen.ours, seen.jump);
  const aim = aims[streams];
  return [
    {
      row: name,
      ours: rate(seen.ours),
      reference: `${rate(seen.jump)}  ssh -J`,
      ratio,
      aim: `≥ ${aim}`,
      met: ratio >= aim,
    },
    {
      row: '',
      ours: rate(seen.ours),
      reference: `${rate(seen.direct)}  ssh`,
      ratio: medianRatio(seen.ours, seen.direct),
      aim: '',
    },
  ];
}

/** What the machine in the middle spends; a busy machine does not spoil it. */
function processorRow(used: Record<'ours' | 'jump', number[]>): Row {
  const seconds = (values: number[]) => `${median(values).toFixed(2)} s/GiB`;
  return {
    row: '  processor time in the middle',
    ours: seconds(used.ours),
    reference: `${seconds(used.jump)}  jump host`,
    ratio: medianRatio(used.ours, used.jump),
    aim: '',
  };
}
