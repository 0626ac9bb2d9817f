/** From nothing to the end of `true`: connection, keys, login, a command, its exit status. */
import { byTurns, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { openSshLab, whyNoSsh } from './ssh-lab.ts';
import type { Report } from './table.ts';

const rounds = 15;
const aim = 1.1;

export async function benchConnect(scratch: Scratch): Promise<Report> {
  const reason = await whyNoSsh(scratch);
  if (reason) return { rows: [], notes: [`connect is left out: ${reason}.`] };
  const ways = (await openSshLab(scratch)).ways();
  const connect = (way: readonly string[]) => async () => {
    const began = performance.now();
    await scratch.run(['ssh', ...way, 'true']);
    return performance.now() - began;
  };
  // The first connection compiles the gateway's code; people meet a gateway that has run for a while.
  for (let warm = 0; warm < 5; warm += 1) await connect(ways.ours)();
  const seen = await byTurns(rounds, {
    direct: connect(ways.direct),
    jump: connect(ways.jump),
    ours: connect(ways.ours),
  });
  const time = (values: number[]) => `${median(values).toFixed(0)} ms`;
  const ratio = medianRatio(seen.ours, seen.jump);
  return {
    rows: [
      {
        row: 'connect and run true',
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
    ],
    notes: [],
  };
}
