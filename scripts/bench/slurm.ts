/**
 * People onto a real Slurm cluster of a head and two nodes, in seconds and in round trips: 200 from nothing, one more, and
 * an observation. The references are the least that could do it (useradd on one host and one call of sacctmgr), and the same
 * when nobody is there yet: neither one more person nor an observation may take longer for those who are.
 */
import { noSlurm, type SlurmLab, startSlurmLab } from '../../test/slurm/lab.ts';
import { driverOf, manifest, person } from '../../test/slurm/people.ts';
import { median } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import type { Report, Row } from './table.ts';

const people = Array.from({ length: 200 }, (_, index) => person(`p${index}`, 31_000 + index));
const rounds = 5;

interface Cost {
  seconds: number;
  trips: number;
}

export async function benchSlurm(_scratch: Scratch): Promise<Report> {
  if (noSlurm) return { rows: [], notes: [`slurm: ${noSlurm}.`] };
  using lab = startSlurmLab();
  const { driver } = driverOf(lab);
  const signal = AbortSignal.timeout(600_000);
  const cost = async (work: () => Promise<unknown>): Promise<Cost> => {
    const [began, before] = [performance.now(), driver.roundTrips];
    await work();
    return { seconds: (performance.now() - began) / 1000, trips: driver.roundTrips - before };
  };
  /** `count` people are there; another comes, several times. */
  const oneMore = async (count: number) => {
    const more: Cost[] = [];
    const observation: Cost[] = [];
    for (let round = 0; round < rounds; round++) {
      const others = Array.from({ length: round + 1 }, (_, index) => person(`x${index}`, 32_000 + index));
      const next = manifest([...people.slice(0, count), ...others]);
      more.push(await cost(() => driver.apply(next, signal)));
      observation.push(await cost(() => driver.observe(signal)));
    }
    return { more: middle(more), observation: middle(observation) };
  };
  await driver.observe(signal);
  await driver.apply(manifest([]), signal);
  await driver.observe(signal);
  const empty = await oneMore(0);
  const bare = await bareSeconds(lab);
  const all = await cost(() => driver.apply(manifest(people), signal));
  await driver.observe(signal);
  const full = await oneMore(people.length);
  const said = ({ seconds, trips }: Cost) => `${seconds.toFixed(2)} s, ${trips} trips`;
  const row = (name: string, ours: Cost, reference: Cost, what: string, aim: number): Row => {
    const ratio = ours.seconds / reference.seconds;
    const met = ratio <= aim && (aim > 2 || ours.trips === reference.trips);
    return {
      row: `slurm, ${name}`,
      ours: said(ours),
      reference: `${said(reference)}  ${what}`,
      ratio,
      aim: `≤ ${aim} times`,
      met,
    };
  };
  return {
    rows: [
      row('200 people', all, { seconds: bare, trips: 0 }, 'useradd on one host, one sacctmgr', 4),
      row('one more with 200 there', full.more, empty.more, 'with nobody there', 1.5),
      row('an observation with 200 there', full.observation, empty.observation, 'with nobody there', 1.5),
    ],
    notes: [],
  };
}

function middle(costs: readonly Cost[]): Cost {
  return {
    seconds: median(costs.map(({ seconds }) => seconds)),
    trips: median(costs.map(({ trips }) => trips)),
  };
}

/** The accounts without anything else. */
async function bareSeconds(lab: SlurmLab): Promise<number> {
  const names = Array.from({ length: people.length }, (_, index) => `b${index}`);
  const began = performance.now();
  const { status, out } = await lab.on(
    'head',
    `for name in ${names.join(' ')}; do useradd -m -p '*' $name || exit; done
     sacctmgr -i add account bare cluster=lab > /dev/null && sacctmgr -i add user ${names.join(',')} account=bare > /dev/null`,
  );
  if (status !== 0) throw new Error(`the reference failed: ${out}`);
  return (performance.now() - began) / 1000;
}
