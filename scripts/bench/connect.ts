/**
 * From nothing to the end of `true`: connection, keys, login, a command, its exit status. Once as the client likes it,
 * and once with the same key exchange for all: what OpenSSH prefers resists quantum computers and takes longer than
 * the rest of a login, so a server without it looks fast for the wrong reason.
 */
import { alternate, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { openSshLab, whyNoSsh } from './ssh-lab.ts';
import type { Report, Row } from './table.ts';

const rounds = 15;
const aim = 1.1;

const exchanges = {
  'connect and run true': [],
  'the same, curve25519': ['KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org'],
};

export async function benchConnect(scratch: Scratch): Promise<Report> {
  const reason = await whyNoSsh(scratch);
  if (reason) return { rows: [], notes: [`connect is left out: ${reason}.`] };
  const lab = await openSshLab(scratch);
  const rows: Row[] = [];
  for (const [name, options] of Object.entries(exchanges)) {
    const ways = lab.ways(...options);
    const connect = (way: readonly string[]) => async () => {
      const began = performance.now();
      await scratch.run(['ssh', ...way, 'true']);
      return performance.now() - began;
    };
    // The first connections compile the gateway's code; people meet a gateway that has run for a while.
    for (let warm = 0; warm < 5; warm += 1) await connect(ways.ours)();
    const seen = await alternate(rounds, {
      direct: connect(ways.direct),
      jump: connect(ways.jump),
      ours: connect(ways.ours),
    });
    rows.push(...compare(name, seen));
  }
  return { rows, notes: [] };
}

function compare(name: string, seen: Record<'direct' | 'jump' | 'ours', number[]>): Row[] {
  const time = (values: number[]) => `${median(values).toFixed(0)} ms`;
  const ratio = medianRatio(seen.ours, seen.jump);
  return [
    {
      row: name,
      ours: time(seen.ours),
      reference: `${time(seen.jump)}  ssh -J`,
      ratio,
      aim: `≤ ${aim}`,
      met: ratio <= aim,
    },
    {
      row: '',
      ours: time(seen.ours),
      reference: `${time(seen.direct)}  ssh`,
      ratio: medianRatio(seen.ours, seen.direct),
      aim: '',
    },
  ];
}
