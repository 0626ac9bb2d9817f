/** Bulk data through the gateway, against the same sshd directly and behind OpenSSH's own jump host. */
import { byTurns, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { openSshLab, whyNoSsh } from './ssh-lab.ts';
import type { Report, Row } from './table.ts';

const rounds = 3;
const bytes = 1024 ** 3;
const aim = 0.9;

const ciphers = { 'default cipher': [], 'aes128-gcm': ['Ciphers aes128-gcm@openssh.com'] };
const directions = {
  down: `"$@" 'head -c ${bytes} /dev/zero' > /dev/null`,
  up: `head -c ${bytes} /dev/zero | "$@" 'cat > /dev/null'`,
};

export async function benchCopy(scratch: Scratch): Promise<Report> {
  const reason = await whyNoSsh(scratch);
  if (reason) return { rows: [], notes: [`copy is left out: ${reason}.`] };
  const lab = await openSshLab(scratch);
  const rows: Row[] = [];
  for (const [name, options] of Object.entries(ciphers)) {
    const ways = lab.ways(...options);
    for (const [direction, script] of Object.entries(directions)) {
      const copy = (way: readonly string[]) => async () => {
        const began = performance.now();
        await scratch.run(['sh', '-c', script, 'sh', 'ssh', ...way]);
        return bytes / 1e6 / ((performance.now() - began) / 1000);
      };
      const seen = await byTurns(rounds, {
        direct: copy(ways.direct),
        jump: copy(ways.jump),
        ours: copy(ways.ours),
      });
      rows.push(...compare(`copy ${direction}, ${name}`, seen));
    }
  }
  return { rows, notes: [] };
}

function compare(name: string, seen: Record<'direct' | 'jump' | 'ours', number[]>): Row[] {
  const rate = (values: number[]) => `${median(values).toFixed(0)} MB/s`;
  const ratio = medianRatio(seen.ours, seen.jump);
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
