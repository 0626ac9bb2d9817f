/**
 * From the start of the program until it serves: both APIs ready, the gateway greeting, the embedded issuer up. The
 * reference is a Node that does nothing. The first start finds neither data nor a compile cache, the second both.
 */
import { once } from 'node:events';
import { join } from 'node:path';
import { alternate, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { configureService, type Service, serving } from './service.ts';
import type { Report, Row } from './table.ts';

const rounds = 5;
const aimSeconds = 1;

const lab = {
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: [{ email: 'ada@physics.example', role: 'owner', username: 'ada' }],
    },
  ],
  clusters: [
    {
      name: 'alpha',
      organization: 'physics',
      scheduler: 'sunk',
      simulated: { computeNodes: 2, gpusPerNode: 8 },
    },
  ],
};

export async function benchStartUp(scratch: Scratch): Promise<Report> {
  let dir = '';
  let service: Service;
  const startAndStop = async () => {
    const began = performance.now();
    const env = { ...process.env, XDG_CACHE_HOME: join(dir, 'cache') };
    const child = scratch.start(service.command, { env });
    const early = once(child, 'exit').then(() => Promise.reject(new Error('the service did not start')));
    await Promise.race([serving(service), early]);
    const seconds = (performance.now() - began) / 1000;
    early.catch(() => {});
    await scratch.end(child);
    return seconds;
  };
  const seen = await alternate(rounds, {
    node: async () => {
      const began = performance.now();
      await scratch.run([process.execPath, '-e', '0']);
      return (performance.now() - began) / 1000;
    },
    first: async () => {
      dir = scratch.folder('start');
      service = await configureService(dir, { lab });
      return startAndStop();
    },
    second: startAndStop,
  });
  const row = (name: 'first' | 'second'): Row => ({
    row: `start, ${name}`,
    ours: `${median(seen[name]).toFixed(2)} s`,
    reference: `${median(seen.node).toFixed(3)} s  node -e 0`,
    ratio: medianRatio(seen[name], seen.node),
    aim: `≤ ${aimSeconds} s`,
    met: median(seen[name]) <= aimSeconds,
  });
  return { rows: [row('first'), row('second')], notes: [] };
}
