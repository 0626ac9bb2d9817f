/**
 * What people feel who are not beside the machine, or come all at once: a copy with a round trip of 100 ms in front of the server,
 * and 200 logins in one second.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../../test/support/ports.ts';
import type { DelayOrder } from './delay.ts';
import type { LoginsOrder, LoginsResult } from './logins.ts';
import { nextLine, program } from './program.ts';
import { alternate, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { openSshLab, type SshLab, whyNoSsh } from './ssh-lab.ts';
import type { Report, Row } from './table.ts';
import { cpuSeconds } from './usage.ts';

const rounds = 3;
const delayMs = 50;
const bytes = 100_000_000;
const aim = 0.95;
const burst = 200;
const aimBurstMs = 1_000;

export async function benchFar(scratch: Scratch): Promise<Report> {
  const reason = await whyNoSsh(scratch);
  if (reason) return { rows: [], notes: [`far is left out: ${reason}.`] };
  const lab = await openSshLab(scratch);
  return {
    rows: [...(await copies(scratch, lab)), ...(await logins(scratch, lab))],
    notes: [],
  };
}

async function copies(scratch: Scratch, lab: SshLab): Promise<Row[]> {
  const [node = 0, gateway = 0] = await freePorts(2);
  const order: DelayOrder = {
    delayMs,
    ports: [
      [node, lab.ports.node],
      [gateway, lab.ports.gateway],
    ],
  };
  const relay = scratch.start(program('delay.ts', order), { stdio: ['ignore', 'pipe', 'inherit'] });
  await nextLine(relay);
  const { direct, ours } = lab.ways('Ciphers aes128-gcm@openssh.com');
  const copy = (way: readonly string[], port: number, real: number, direction: 'down' | 'up') => async () => {
    const there = ['-p', `${port}`, '-o', `HostKeyAlias=[127.0.0.1]:${real}`];
    const script =
      direction === 'down'
        ? `ssh "$@" 'head -c ${bytes} /dev/zero' > /dev/null`
        : `head -c ${bytes} /dev/zero | ssh "$@" 'cat > /dev/null'`;
    const began = performance.now();
    await scratch.run(['sh', '-c', script, 'sh', ...there, ...way]);
    return bytes / 1e6 / ((performance.now() - began) / 1000);
  };
  const rows: Row[] = [];
  for (const direction of ['down', 'up'] as const) {
    const seen = await alternate(rounds, {
      direct: copy(direct, node, lab.ports.node, direction),
      ours: copy(ours, gateway, lab.ports.gateway, direction),
    });
    const ratio = medianRatio(seen.ours, seen.direct);
    rows.push({
      row: `copy ${direction}, ${2 * delayMs} ms away`,
      ours: `${median(seen.ours).toFixed(1)} MB/s`,
      reference: `${median(seen.direct).toFixed(1)} MB/s  ssh`,
      ratio,
      aim: `≥ ${aim}`,
      met: ratio >= aim,
    });
  }
  await scratch.end(relay);
  return rows;
}

async function logins(
  scratch: Scratch,
  { ports, names, userKeyFile: keyFile, gateway }: SshLab,
): Promise<Row[]> {
  const come = async (target: LoginsOrder['target']) => {
    const order: LoginsOrder = { perSecond: burst, seconds: 1, keyFile, target };
    const result = JSON.parse((await scratch.run(program('logins.ts', order))).split('\n').at(-2) ?? '');
    const { failed, p99Ms } = result as LoginsResult;
    if (failed > 0) throw new Error(`${failed} of ${burst} logins failed`);
    return p99Ms;
  };
  const ours = { port: ports.gateway, username: names.gateway };
  // The code of a login is compiled with the first.
  await come(ours);
  const seen = await alternate(rounds, {
    direct: () => come({ port: ports.node, username: names.node }),
    ours: () => come(ours),
  });
  const before = cpuSeconds(gateway);
  await sleep(2_000);
  const idle = (cpuSeconds(gateway) - before) / 2;
  const p99 = median(seen.ours);
  return [
    {
      row: `${burst} logins in a second, 99th percentile`,
      ours: `${p99.toFixed(0)} ms`,
      reference: `${median(seen.direct).toFixed(0)} ms  ssh`,
      ratio: medianRatio(seen.ours, seen.direct),
      aim: `≤ ${aimBurstMs} ms`,
      met: p99 <= aimBurstMs,
    },
    {
      row: '  processor afterwards, of one core',
      ours: `${(idle * 100).toFixed(1)} %`,
      reference: '',
      ratio: idle,
      aim: '',
    },
  ];
}
